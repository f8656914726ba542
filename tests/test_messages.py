"""The normal form of messages and the identity of prompts, from every form that has been recorded and odd ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltracer_sqlite import messages
from rltracer_sqlite.messages import (
    EMPTY_PREVIEW,
    PREVIEW_CHARACTERS,
    content_text,
    is_empty,
    normal_message,
    one_line,
    preview,
    prompt_context,
    prompt_key,
    tool_call,
    tool_definitions,
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
DEEP = "[" * 100_000


def function(name: Any, arguments: Any, id: Any = None) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ({"id": "1", "name": "add", "arguments": '{"a":1}'}, function("add", '{"a":1}', "1")),
        ({"id": "1", "function": {"name": "add", "arguments": '{"a":1}'}}, function("add", '{"a":1}', "1")),
        ('{"id":"1","name":"add","arguments":"{}"}', function("add", "{}", "1")),
        ('{"function":{"name":"add","arguments":{"a":1}}}', function("add", '{"a": 1}')),
        ({"name": "add"}, function("add", "")),
        ({"function": "add", "arguments": "{}"}, function("add", "{}")),
        ("rm -rf /", function(None, "rm -rf /")),
        (DEEP, function(None, DEEP)),
        (None, function(None, "null")),
        ([1, 2], function(None, "[1, 2]")),
        ({}, function(None, "")),
    ],
)
def test_tool_calls_have_one_form(recorded: Any, expected: dict[str, Any]) -> None:
    assert tool_call(recorded) == expected


def test_what_the_responses_api_adds_to_a_call_is_kept() -> None:
    call = tool_call({"id": "1", "type": "custom", "name": "shell", "arguments": "ls", "namespace": "box"})
    assert (call["type"], call["recorded_type"], call["namespace"]) == ("function", "custom", "box")


@pytest.mark.parametrize(
    "recorded",
    [
        [{"type": "function", "function": {"name": "add", "description": "adds"}}],
        [{"name": "add", "description": "adds", "parameters": None}],
        ['{"name":"add","description":"adds"}', "no json", 5, None],
        '[{"name":"add","description":"adds"}]',
        {"name": "add", "description": "adds"},
    ],
)
def test_tool_definitions_have_one_form(recorded: Any) -> None:
    assert tool_definitions(recorded) == [{"type": "function", "function": {"name": "add", "description": "adds"}}]


@pytest.mark.parametrize(
    ("function", "known"), [("add", {"name": "add"}), (5, {}), ([1], {}), (True, {}), ("", {"name": ""})]
)
def test_a_function_that_is_no_object_is_none_of_a_definition(function: Any, known: dict[str, Any]) -> None:
    recorded = {"type": "function", "function": function, "strict": True, "more": 1}
    expected = {"type": "function", "function": {**known, "strict": True}, "more": 1}
    assert tool_definitions([recorded]) == [expected]


@pytest.mark.parametrize("recorded", [None, 5, "", "no json", DEEP, [], [5], True])
def test_what_is_no_tool_definition_gives_none(recorded: Any) -> None:
    assert tool_definitions(recorded) == []


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("a", "a"),
        ([{"type": "text", "text": "a"}, "b", {"type": "image_url"}, {"text": 5}, {}, 7], "ab[image_url][part][part]7"),
        ({"a": 1}, '{"a": 1}'),
        (1.5, "1.5"),
        ([], ""),
    ],
)
def test_the_text_of_a_content(content: Any, text: str) -> None:
    assert content_text(content) == text


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "name", "x"]), JSON_VALUES))
def test_any_object_becomes_a_message(recorded: dict[str, Any]) -> None:
    message = normal_message(recorded)
    assert isinstance(message["role"], str)
    assert "content" in message
    assert all(isinstance(call["function"]["arguments"], str) for call in message.get("tool_calls", ()))
    assert message.get("x") == recorded.get("x") or message["x"] != message["x"]
    json.dumps([message, preview([message]), content_text(message["content"]), prompt_key([message])])


@settings(deadline=None)
@given(st.lists(st.fixed_dictionaries({"role": JSON_VALUES, "content": JSON_VALUES}), max_size=3))
def test_any_context_has_a_key_and_a_preview_of_one_line(context: list[dict[str, Any]]) -> None:
    assert len(prompt_key(context)) == 64
    line = preview(context)
    assert 0 < len(line) <= PREVIEW_CHARACTERS
    assert "\n" not in line
    assert "\0" not in line


@pytest.mark.parametrize(
    "same",
    [
        [{"role": "user", "content": "  a\n"}],
        [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
        [{"role": "user", "content": ["a"], "name": "somebody"}],
    ],
)
def test_the_same_words_have_the_same_key(same: list[dict[str, Any]]) -> None:
    assert prompt_key(same) == prompt_key([{"role": "user", "content": "a"}])


@pytest.mark.parametrize(
    "other",
    [
        [{"role": "system", "content": "a"}],
        [{"role": "user", "content": "a"}, {"role": "user", "content": ""}],
        [{"role": "user", "content": "a\0"}],
        [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]}],
        [{"role": "user", "content": ""}, {"role": "user", "content": "a"}],
        [],
    ],
)
def test_other_words_have_another_key(other: list[dict[str, Any]]) -> None:
    assert prompt_key(other) != prompt_key([{"role": "user", "content": "a"}])


@pytest.mark.parametrize("make", [lambda text: text, lambda text: [{"type": "image_url", "image_url": text}]])
def test_a_key_does_not_depend_on_the_slices(make: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # Half of a pair stands alone where a slice ends inside it, and must give the bytes that it gives in the whole.
    context = [{"role": "user", "content": make("é\N{GRINNING FACE}\ud83dx" * 50)}]
    whole = prompt_key(context)
    monkeypatch.setattr(messages, "SLICE", 3)
    assert prompt_key(context) == whole


def test_the_context_ends_before_the_first_answer() -> None:
    said = [{"role": role} for role in ("system", "user", "assistant", "user")]
    assert prompt_context(said) == said[:2]


@pytest.mark.parametrize("content", [None, "", " \n\u3000", [], [{"type": "text", "text": " "}]])
def test_a_prompt_without_words_is_empty(content: Any) -> None:
    context = [{"role": "user", "content": content}]
    assert is_empty(context)
    assert preview(context) == EMPTY_PREVIEW


def test_a_prompt_of_an_image_is_not_empty() -> None:
    assert not is_empty([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}])


def test_the_preview_is_the_first_text_of_the_user() -> None:
    context = [{"role": "system", "content": "be nice"}, {"role": "user", "content": "\n what\u2028is  it? "}]
    assert preview(context) == "what is it?"
    assert preview(context[:1]) == "be nice"


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        (["Which picture?", {"type": "image_url", "image_url": {"url": "data:"}}], "Which picture? [image_url]"),
        ([{"type": "image"}, {"type": "text", "text": "or this"}, "?"], "[image] or this?"),
        ([{"type": "image"}, {"type": "image"}], "[image] [image]"),
    ],
)
def test_what_is_no_text_stands_apart_in_a_preview(parts: list[Any], line: str) -> None:
    assert preview([{"role": "user", "content": parts}]) == line


@pytest.mark.parametrize("text", ["x" * 1_000_000, " " * 1_000_000 + "x", "x y " * 300_000, "x\0" * 5000])
def test_a_long_text_is_cut_to_one_line(text: str) -> None:
    assert len(one_line(text)) <= PREVIEW_CHARACTERS
    assert "\0" not in one_line(text)
