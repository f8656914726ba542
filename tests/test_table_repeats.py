"""Rows of a file that stand in the file before: counted once where they are the same samples for sure, else each."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from rltracer_sqlite.sources.table.repeats import Compared, common_lengths
from tests.commands import indexed, rltracer
from tests.indexing import rows, value
from tests.table_rows import write_parquet

pytest.importorskip("pyarrow")
LONG = "so many words that nobody writes them twice by chance, number "
Samples = list[tuple[str, str]]  # prompt and answer


def of_one_prompt(*answers: str) -> Samples:
    return [("6 * 7?", answer) for answer in answers]


LONG_ONES = of_one_prompt(*(f"{LONG}{number}" for number in range(4)))
SURE = {  # the file, the one after it, and how many of its rows are those of the first
    "all again": (LONG_ONES, LONG_ONES, 4),
    "the last ones and others": (LONG_ONES, LONG_ONES[2:] + of_one_prompt("a", "b"), 2),
    "all and others": (LONG_ONES, [*LONG_ONES, ("7 * 8?", "56")], 4),
    "many short ones": (s := of_one_prompt(*"31415926535897"), s, 14),
    "two prompts": (t := [*LONG_ONES[:2], ("2 + 2?", "4"), ("2 + 2?", "4")], t, 4),
}
NOT_SURE = {  # and how many are equal to the last ones, 0 where this says nothing
    "a policy that has collapsed": (c := of_one_prompt(*["42"] * 8), c, 8),
    "one long answer to each prompt": (d := [("6 * 7?", LONG), ("7 * 8?", LONG + "two")] * 2, d, 4),
    "two long answers again and again": (e := of_one_prompt(LONG, LONG + "two", LONG, LONG + "two"), e, 4),
    "answers of a word": (y := of_one_prompt("yes", "no", "yes", "yes"), y, 4),
    "a row": (of_one_prompt("42"), of_one_prompt("42"), 1),
    "a row by chance": (of_one_prompt("41", "42"), of_one_prompt("42", "40"), 0),
    "a shorter file, as of another run": (LONG_ONES, LONG_ONES[1:], 0),
    "another order": (LONG_ONES, LONG_ONES[::-1], 0),
    "not at the end": (LONG_ONES, [*LONG_ONES[1:3], *of_one_prompt("a", "b")], 0),
}  # fmt: skip


def write(run: Path, step: int, samples: Samples) -> None:
    held = [{"step": step, "prompt": prompt, "completion": said, "right": 1.0} for prompt, said in samples]
    write_parquet(run / f"completions_{step:05}.parquet", held)


@pytest.mark.parametrize("case", sorted(SURE))
def test_the_same_samples_are_counted_once_and_the_summary_says_how_many_and_why(tmp_path: Path, case: str) -> None:
    before, after, repeated = SURE[case]
    write(tmp_path / "run", 1, before)
    write(tmp_path / "run", 2, after)
    told = indexed(tmp_path / "x.sqlite", tmp_path / "run").stdout
    assert f"  {repeated} rows of 1 file that stand at the end of the file before are counted once\n" in told
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories") == len(before) + len(after) - repeated
    assert (
        rltracer("inspect", tmp_path / "x.sqlite", "--problems")
        .stdout.split("\n")[0]
        .startswith("completions_00002.parquet")
    )
    assert rows(tmp_path / "x.sqlite", "select reason from problems") == [
        (
            f"{repeated} rows from here on repeat the end of completions_00001.parquet, the file before this one, and "
            "are counted once",
        )
    ]


@pytest.mark.parametrize("case", sorted(NOT_SURE))
def test_a_second_sample_with_the_same_words_is_never_left_out(tmp_path: Path, case: str) -> None:
    before, after, equal = NOT_SURE[case]
    write(tmp_path / "run", 1, before)
    write(tmp_path / "run", 2, after)
    told = indexed(tmp_path / "x.sqlite", tmp_path / "run").stdout
    assert "counted once" not in told
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories") == len(before) + len(after)
    rows_equal = (
        "1 row from here on equals the last one" if equal == 1 else f"{equal} rows from here on equal the last ones"
    )
    said = (
        f"{rows_equal} of completions_00001.parquet, logged again or sampled anew, which such short or like answers do "
        "not tell: each is counted"
    )
    assert rows(tmp_path / "x.sqlite", "select reason from problems") == ([(said,)] if equal else [])


def test_a_mapping_without_repeats_counts_every_row(tmp_path: Path) -> None:
    for step in (1, 2):
        write(tmp_path / "run", step, LONG_ONES)
    mapping = rltracer("sources", "show", "trl").stdout.replace("repeats = true", "").replace('"trl"', '"my-trl"')
    (tmp_path / "my.toml").write_text(mapping)
    assert indexed(tmp_path / "x.sqlite", tmp_path / "run", "--mapping", tmp_path / "my.toml").returncode == 0
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories") == 8


def test_rows_that_are_all_equal_are_compared_a_few_times_each() -> None:
    compared = 0

    class Row:
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return True

        __hash__ = object.__hash__

    before, after = ([cast(Compared, Row()) for _ in range(500)] for _ in range(2))
    assert common_lengths(before, after) == list(range(1, 501))
    assert compared < 5 * 500


@pytest.mark.parametrize(
    ("before", "after", "lengths"),
    [
        ("xabab", "ababx", [2, 4]),
        ("aab", "ab", [2]),
        ("ab", "abab", [2]),
        ("aba", "ab", [1]),
        ("", "a", []),
        ("a", "ba", []),
    ],
)
def test_the_end_of_one_file_is_found_at_the_beginning_of_the_next(before: str, after: str, lengths: list[int]) -> None:
    rows = [[Compared(row.encode(), b"", b"") for row in file] for file in (before, after)]
    assert common_lengths(*rows) == lengths
