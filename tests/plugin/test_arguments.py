"""The arguments of tool calls: named where they are an object, else exactly as recorded, and flagged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_rltracer.arguments import read_arguments


def shown(recorded, **options):
    return [(a.name, a.text.text, a.kind) for a in read_arguments(recorded, 1000, **options).named]


def test_strings_are_shown_as_the_text_they_stand_for():
    assert shown('{"command": "a\\n\\"b\\""}') == [("command", 'a\n"b"', None)]


def test_other_values_are_shown_as_json_with_their_kind():
    recorded = '{"n":1.50,"on":true,"no":null,"list":[1,2],"map":{"a":{"b":2}},"text":"5"}'
    assert shown(recorded) == [
        ("n", "1.50", "number"),
        ("on", "true", "boolean"),
        ("no", "null", "null"),
        ("list", "[1,2]", "array"),
        ("map", '{\n  "a": {\n    "b": 2\n  }\n}', "object"),
        ("text", "5", None),
    ]


def test_a_name_that_is_given_twice_is_shown_twice():
    assert [name for name, _, _ in shown('{"a": 1, "a": {"a": "x"}}')] == ["a", "a"]
    assert read_arguments('{"a": 1, "a": 2}', 10).remark == "an argument is given twice"


@pytest.mark.parametrize(
    ("recorded", "remark"),
    [
        ('{"command": ', "not JSON"),
        ("NaN", "not JSON"),
        ('{"a": Infinity}', "not JSON"),
        ('{"a": 1} trailing', "not JSON"),
        ("ls -l", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[1, 2]", "no object"),
        ('"text"', "no object"),
    ],
)
def test_what_is_no_object_is_shown_as_recorded_and_flagged(recorded, remark):
    arguments = read_arguments(recorded, 10_000_000)
    assert remark in (arguments.remark or "")
    assert arguments.text is not None
    assert "".join(arguments.text.text.split()) == "".join(recorded.split())


@pytest.mark.parametrize("recorded", ["", "  ", "{}"])
def test_no_arguments(recorded):
    assert read_arguments(recorded, 10).remark == "no arguments"


def test_a_tool_that_takes_free_text_is_not_flagged():
    arguments = read_arguments("print(1)", 100, free_text=True)
    assert (arguments.text.text, arguments.remark) == ("print(1)", None)


def test_long_values_are_cut_with_their_size():
    [argument] = read_arguments(json.dumps({"a": "x" * 50}), 10).named
    assert (argument.text.text, argument.text.characters) == ("x" * 10, 50)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.dictionaries(st.text(), st.text()))))
def test_every_argument_of_an_object_is_there_in_order(value):
    found = shown(json.dumps(value), free_text=False)
    assert [name for name, _, _ in found] == list(value)
    for (_, text, kind), given_value in zip(found, value.values(), strict=True):
        if len(text) < 1000:
            assert (text if kind is None else json.loads(text)) == given_value
