"""A chart says what of the run was not read, joins nothing across it, and says which split its counts are of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.charts.gaps import Window, stretches, unread_windows
from tests.commands import indexed, rltracer
from tests.layouts import append, message, trace

TRACES = "rollouts/step_{}/train/all/traces.jsonl"
SAID = [message("user", "Well?"), message("assistant", "Yes.")]
UNREAD = "No trajectories of steps 2–3 of train were read."
NOTE = "2 of 4 files could not be read, of steps 2–3"
NO_LINE = " No line is drawn across what was not read."


@pytest.fixture
def database(tmp_path: Path) -> Path:
    for step in (1, 2, 3, 4):
        append(tmp_path / "run" / TRACES.format(step), trace(SAID, id=f"t{step}", reward=step % 2))
    for step in (2, 3):
        file = tmp_path / "run" / TRACES.format(step)
        file.unlink()
        file.mkdir()
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    return tmp_path / "x.sqlite"


@pytest.mark.parametrize(("chart", "lines"), [("pass-rate", NO_LINE), ("reward", NO_LINE), ("difficulty", "")])
def test_a_caption_says_which_steps_were_not_read(database: Path, tmp_path: Path, chart: str, lines: str) -> None:
    done = rltracer("plot", database, chart, "-o", tmp_path / "x.html")
    assert UNREAD in " ".join(done.stdout.split())
    assert f"{UNREAD}{lines} Note: {NOTE}".replace("–", "\\u2013") in (tmp_path / "x.html").read_text()
    within = rltracer("plot", database, chart, "--step-start", 4, "-o", tmp_path / "x.html").stdout
    assert "No trajectories of" not in " ".join(within.split())


def test_a_picture_says_it_beneath_its_title(database: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    assert rltracer("plot", database, "reward", "-o", tmp_path / "x.svg").returncode == 0
    drawn = (tmp_path / "x.svg").read_text()
    assert f"{UNREAD}{NO_LINE} Note: {NOTE}" in re.sub(r"</tspan><tspan[^>]*>", " ", drawn)
    assert [path.count("L") for path in re.findall(r'roledescription="line mark" d="([^"]+)"', drawn)] == [0, 0]


@pytest.mark.parametrize("output", [[], ["-o", "x.html"]], ids=["terminal", "file"])
def test_what_is_amiss_is_told_once_with_what_lists_it(
    database: Path, output: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(database.parent)
    done = rltracer("plot", database, "pass-rate", *output, is_terminal=True)
    said, told = (" ".join(text.split()) for text in (done.stdout, done.stderr))
    assert UNREAD in said
    assert (NOTE in said, told.count(NOTE), "--problems lists them" in told) == (False, 1, True)
    assert "No line" not in said


def test_a_step_that_was_not_read_is_a_line_of_the_chart_in_the_terminal(database: Path) -> None:
    shown = rltracer("plot", database, "pass-rate", is_terminal=True).stdout.splitlines()
    assert [line.split()[1:] for line in shown[3:5]] == [["2", "not", "read"], ["3", "not", "read"]]
    windows = rltracer("plot", database, "reward", "--window", 2, is_terminal=True).stdout
    assert "not read" not in windows
    assert "A window holds only those of its steps that were read." in " ".join(windows.split())


def over_steps(split: str | None, *steps: int, size: int = 1) -> list[dict[str, Any]]:
    return [{"split": split, "step_first": step, "step_last": step + size - 1} for step in steps]


MISSING: dict[str, tuple[list[dict[str, Any]], list[tuple[str | None, int]], int, list[tuple[Any, ...]]]] = {
    "nothing": (over_steps("train", 1, 2), [], 1, []),
    "between": (over_steps("train", 1, 2, 5), [("train", 3), ("train", 4)], 1, [("train", 3, 3), ("train", 4, 4)]),
    "of another split": (over_steps("train", 1, 3), [("eval", 2)], 1, []),
    "before and after": (over_steps("train", 5, 6), [("train", 1), ("train", 7)], 1, []),
    "of a split that is not known": (
        over_steps("train", 1, 3) + over_steps("eval", 1, 3), [(None, 2)], 1, [("eval", 2, 2), ("train", 2, 2)]
    ),
    "of a run without splits": (over_steps(None, 1, 3), [(None, 2)], 1, [(None, 2, 2)]),
    "in a window that has another": (over_steps("train", 1, 4, size=3), [("train", 5)], 3, []),
    "a whole window": (over_steps("train", 2, 8, size=3), [("train", 6)], 3, [("train", 5, 7)]),
    "the end of the run": (
        [*over_steps("eval", 1, 4, size=3), *over_steps("train", 1, size=3)],
        [("train", 5), ("train", 9)], 3, [("train", 4, 6)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISSING)
def test_windows_of_which_nothing_was_read(case: str) -> None:
    rows, missing, size, found = MISSING[case]
    assert unread_windows(rows, missing, size) == {Window(*window) for window in found}


def test_charts_that_are_not_over_steps_have_no_such_windows() -> None:
    rows = [{"step_first": 1, "step_last": 1}, {"step_first": 3, "step_last": 3}]
    assert unread_windows(rows, [("train", 2)], 1) == unread_windows([], [("train", 2)], 1) == set()
    assert stretches(rows, []) == [0, 0]


def test_a_line_joins_the_rows_between_two_gaps() -> None:
    rows = [*over_steps("eval", 1, 11), *over_steps("train", 1, 2, 4, 9, 10)]
    gaps = unread_windows(rows, [("train", step) for step in (3, 6, 7)], 1)
    told = [(row["split"], place) for row, place in zip(rows, stretches(rows, gaps), strict=True)]
    assert told == [("eval", 0)] * 2 + [("train", 0)] * 2 + [("train", 1)] + [("train", 3)] * 2


def test_a_chart_of_one_split_names_it(database: Path, tmp_path: Path) -> None:
    said = " ".join(rltracer("plot", database, "difficulty", "-o", tmp_path / "x.html").stdout.split())
    assert "Pass rates of 1 of 1 scored prompt of train in " in said
    assert "; all of train scored." in said


@pytest.mark.parametrize("window", [1, 2])
def test_a_step_whose_records_repeat_others_was_read(tmp_path: Path, window: int) -> None:
    for step in (1, 2, 3, 4):
        append(tmp_path / "run" / TRACES.format(step), trace(SAID, id=f"t{step}", reward=step % 2))
    for step in (5, 7):
        append(tmp_path / "run" / TRACES.format(step), trace(SAID, id="t7", reward=1))
    (tmp_path / "run" / TRACES.format(3)).write_text("{no record\n")
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    for options in ([], ["-o", tmp_path / "x.html"]):
        done = rltracer("plot", tmp_path / "x.sqlite", "pass-rate", *options, "--window", window, is_terminal=True)
        said = " ".join(done.stdout.split())
        assert "No trajectories of step 3 of train were read." in said
        assert said.endswith("All records of step 5 of train repeat others, where they are counted.")
        assert ("holds only" in said) is (window > 1)
    shown = rltracer("plot", tmp_path / "x.sqlite", "pass-rate", is_terminal=True).stdout
    assert [line.split()[1:] for line in shown.splitlines() if "not read" in line] == [["3", "not", "read"]]
    assert not re.search(r"^ +step 5 ", shown, re.MULTILINE)
    assert "step 5 (train): 1 record repeats one of step 7" in " ".join(
        rltracer("inspect", tmp_path / "x.sqlite").stdout.split()
    )
