"""Code set apart from prose without a character added or lost, and JSON given line breaks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_rltracer.blocks import JSON_LABEL, MOST_BLOCKS, code_blocks, formatted, with_line_breaks
from datasette_rltracer.parts import Part
from datasette_rltracer.text import Text, cut

from .html import visible_text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n```python\nx = 1\n```\nb", ["```python\nx = 1\n```\n"]),
        ("```\nnever closed", ["```\nnever closed"]),
        ("~~~\n```\n~~~", ["~~~\n```\n~~~"]),
        ("````\n```\n````", ["````\n```\n````"]),
        ("```a\n1\n```\n```b\n2\n```", ["```a\n1\n```\n", "```b\n2\n```"]),
        ("inline ```code``` stays", []),
        ("```not ` a fence\nx", []),
        ("    ```\nindented by four", []),
        ("", []),
    ],
)
def test_fenced_code_is_found(text, code):
    assert [block for is_code, block in code_blocks(text) if is_code] == code


@given(st.lists(st.sampled_from(["```", "~~~", "````", "\n", "py", " ", "x", "<b>", "\r", "\0"])).map("".join))
def test_no_character_is_added_or_lost(text):
    assert "".join(block for _, block in code_blocks(text)) == text
    assert visible_text(f"<div>{formatted(text)}</div>") == text


def test_the_language_of_a_block_is_harmless():
    assert 'data-language="imgsrcxonerror1"' in formatted('```<img src=x onerror="1">\n```')


def test_a_text_of_fences_has_so_many_blocks_at_most():
    text = "```\nx\n```\n" * 2000
    assert len(code_blocks(text)) <= MOST_BLOCKS + 1


LONG = json.dumps({"files": [{"name": "gasket", "units": n} for n in range(5)]})


def test_json_on_one_line_gets_line_breaks():
    part = with_line_breaks(Part(cut(LONG, 1000)))
    assert part.label == JSON_LABEL
    assert json.loads(part.text.text) == json.loads(LONG)
    assert "\n" in part.text.text
    assert not part.text.is_cut


@pytest.mark.parametrize(
    "part",
    [
        Part(cut(LONG, 50)),
        Part(cut(LONG, 1000), label="audio"),
        Part(cut(LONG[:-1], 1000)),
        Part(cut(json.dumps(json.loads(LONG), indent=1), 1000)),
        Part(cut("[1]", 1000)),
        Part(cut("[" * 5000, 10_000)),
        Part(cut("x" * 100, 1000)),
        Part(image="data:image/png;base64,AAAA"),
    ],
    ids=["cut", "labelled", "broken", "has line breaks", "short", "deep", "no JSON", "image"],
)
def test_any_other_text_stays_as_it_is(part):
    assert with_line_breaks(part) == part


def test_numbers_keep_their_digits():
    text = '{"a": 1.0000000000000000001, "b": 12345678901234567890123, "c": "' + "x" * 60 + '"}'
    assert "1.0000000000000000001" in with_line_breaks(Part(Text(text, len(text)))).text.text
