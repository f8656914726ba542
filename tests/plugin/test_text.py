"""Text on its way to a page: escaped, its invisible characters shown, JSON re-indented without a change."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_rltracer.text import INVISIBLE, cut, first_words, json_text, plain, reindented, visible

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>", "&lt;script&gt;"),
        ("a\tb\r\nc\n", "a\tb\r\nc\n"),
        ("\x1b[31m", '<span class="invisible" title="U+001B">␛</span>[31m'),
        ("\0", '<span class="invisible" title="U+0000">␀</span>'),
        ("a\rb", 'a<span class="invisible" title="U+000D">␍</span>b'),
        ("\u202e", '<span class="invisible" title="U+202E RIGHT-TO-LEFT OVERRIDE">⟨U+202E⟩</span>'),
        ("\ud800", '<span class="invisible" title="U+D800">⟨U+D800⟩</span>'),
        (None, ""),
    ],
)
def test_visible_escapes_and_marks(text, shown):
    assert str(visible(text)) == shown


@given(st.text(st.characters(codec=None)))
def test_what_is_shown_can_be_sent_and_hides_nothing(text):
    for shown in (str(visible(text)), plain(text)):
        shown.encode("utf-8")
        assert not INVISIBLE.search(shown)
    assert "<" not in re.sub(r'<span class="invisible" title="[^"<>]*">|</span>', "", str(visible(text)))


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_reindented_changes_white_space_only(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert json.loads(reindented(text)) == value
    assert "".join(reindented(text).split()) == "".join(text.split())


def test_reindented_keeps_numbers_and_repeated_names_as_written():
    text = '{"a":1.50,"a":1E400,"ids":[1,2,3],"b":{},"c":[{"d":null}]}'
    expected = (
        '{\n  "a": 1.50,\n  "a": 1E400,\n  "ids": [1,2,3],\n  "b": {},\n  "c": [\n    {\n      "d": null\n    }\n  ]\n}'
    )
    assert reindented(text) == expected


def test_deep_json_neither_recurses_nor_grows_without_bound():
    text = '{"a":' * 20_000 + "1" + "}" * 20_000
    assert reindented(text) == text


def test_json_text_of_a_value_that_is_nested_too_deeply():
    value: list = []
    for _ in range(100_000):
        value = [value]
    assert "too deeply" in json_text(value)


def test_cut_says_how_much_there_is():
    assert cut("abcdef", 4).text == "abcd"
    assert (cut("abcdef", 4).characters, cut("abcdef", 4).is_cut, cut("abcd", 4).is_cut) == (6, True, False)


def test_first_words_are_one_line():
    assert first_words("  one\n two ") == "one two"
    assert first_words("word " * 100, 12) == "word word…"
    assert first_words("word " * 100, 14) == "word word…"
    assert first_words("wörter" * 100, 12) == "wörterwörte…"
    assert first_words("one two three", 13) == "one two three"
    assert first_words("one\n" + " " * 100 + "two", 20) == "one…"
