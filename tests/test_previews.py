"""Texts of prompts in a list: cut to its width, and told apart."""

from __future__ import annotations

import pytest

from rltracer_sqlite.cli.columns import width_of
from rltracer_sqlite.cli.previews import names_apart, paths_apart, told_apart

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


NAME = "qwen3-8b-grpo-lr1e-6-seed"


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["run-a", "run-b"], ["run-a", "run-b"]),
        (
            [f"{NAME}{number}" for number in (1, 2, 10)],
            ["qwen3-…lr1e-6-seed1", "qwen3-…lr1e-6-seed2", "qwen3-…r1e-6-seed10"],
        ),
        ([f"{NAME}1", "base"], ["qwen3-…lr1e-6-seed1", "base"]),
        ([f"{NAME}-{seed}-and-what-is-the-same" for seed in "ab"], ["qwen3-…a-and-what-…", "qwen3-…b-and-what-…"]),
        ([NAME, NAME], ["qwen3-…-lr1e-6-seed"] * 2),
        (["長い名前の実験その一番目", "長い名前の実験その二番目"], ["長い名…験その一番目", "長い名…験その二番目"]),
        ([], []),
    ],
    ids=range(7),
)
def test_names_lose_their_middle_and_are_told_apart(names: list[str], shown: list[str]) -> None:
    assert names_apart(names, 19) == shown


@pytest.mark.parametrize("width", range(4, 40))
def test_no_text_is_wider_than_its_list(width: int) -> None:
    texts = [ASKED.format(number, "答案是四十二") for number in ("九", "\x1b[31m十", "十\n一", "")]
    assert all(width_of(text) <= width and text.isprintable() for text in told_apart(texts, width))
    assert all(width_of(text) <= width and text.isprintable() for text in names_apart(texts, width))


@pytest.mark.parametrize(
    ("paths", "width", "shown"),
    [
        (["a/b.jsonl"], 9, ["a/b.jsonl"]),
        (["rollouts/step_3/x.jsonl", "x.jsonl"], 22, ["…/step_3/x.jsonl", "x.jsonl"]),
        (["rollouts/step_3/x.jsonl"], 15, ["…/x.jsonl"]),
        (["one/a-very-long-name.jsonl"], 12, ["…-name.jsonl"]),
        (["r/step_3/all/x.jsonl", "r/step_12/all/x.jsonl"], 19, ["…/step_3/…/x.jsonl", "…/step_12/…/x.jsonl"]),
        (["r/step_3/all/x.jsonl", "r/step_12/all/x.jsonl"], 18, ["…/all/x.jsonl", "…/all/x.jsonl"]),
        (["a/some/all/x.jsonl", "b/some/all/x.jsonl"], 14, ["a/…/x.jsonl", "b/…/x.jsonl"]),
        (["r/some-a/x.jsonl", "r/some-b/x.jsonl"], 14, ["…/x.jsonl", "…/x.jsonl"]),
        (["some/r/a/a", "some/r/a"], 3, ["…/a", "…/a"]),
        (["r/one-name.jsonl", "r/two-name.jsonl"], 9, ["…me.jsonl", "…me.jsonl"]),
        (["r/a\n\x1b/x.jsonl"], 12, ["…/x.jsonl"]),
        (["rr/\x1b/x.jsonl"], 11, ["…/␛/x.jsonl"]),
        (["/data/日本/x.jsonl"], 14, ["…/日本/x.jsonl"]),
        (["/data/日本/x.jsonl"], 13, ["…/x.jsonl"]),
    ],
)  # fmt: skip
def test_a_path_keeps_the_name_of_its_file(paths: list[str], width: int, shown: list[str]) -> None:
    assert paths_apart(paths, width) == shown
    assert all(width_of(path) <= width for path in shown)
