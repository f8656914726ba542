"""Texts of prompts in a list: cut to its width, and told apart."""

from __future__ import annotations

import pytest

from rltracer_sqlite.cli.columns import width_of
from rltracer_sqlite.cli.previews import told_apart

ASKED = "Decide whether the answer is right: {} = {}?"


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["short", "other"], ["short", "other"]),
        (["a text that is too long", "another that is too long"], ["a text that is too…", "another that is to…"]),
        ([ASKED.format("12 + 5", 17), ASKED.format("9 * 9", 81)], ["Decide…12 + 5 = 17?", "Decide…9 * 9 = 81?"]),
        ([ASKED.format("1", 2)] * 2, ["Decide whether the…"] * 2),
        (["x" * 30 + "1", "x" * 30 + "2", "short"], ["xxxxxx…1", "xxxxxx…2", "short"]),
        (["1 " * 30, "1 " * 30 + "2"], ["1 1 1 1 1 1 1 1 1 …", "1 1 1…2"]),
        ([], []),
    ],
)
def test_what_several_texts_begin_with_is_left_out(texts: list[str], shown: list[str]) -> None:
    assert told_apart(texts, 19) == shown


@pytest.mark.parametrize("width", range(4, 40))
def test_no_text_is_wider_than_its_list(width: int) -> None:
    texts = [ASKED.format(number, "答案是四十二") for number in ("九", "\x1b[31m十", "十\n一", "")]
    assert all(width_of(text) <= width and text.isprintable() for text in told_apart(texts, width))
