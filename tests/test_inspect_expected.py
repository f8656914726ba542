"""`rltracer inspect --trajectory`: the answer that was expected, alone, beside another one, and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rltracer_sqlite.cli.columns import width_of
from tests.commands import Done, indexed, rltracer
from tests.layouts import append, message, trace

LONG = "word " * 100 + "end"  # 503 characters
CODE = "def f():\n    return 42\nreward 1 · advantage 0"
EXPECTED = ["42", LONG, CODE, "\x1b[2J\u202e<b>", None, LONG + " of another one", "42"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("expected")
    for number, answer in enumerate(EXPECTED, start=1):
        data = {"idx": number} | ({} if answer is None else {"answer": answer})
        record = trace([message("user", "?"), message("assistant", "!")], id=f"t{number}", task=data)
        append(folder / "run/rollouts/step_1/train/all/traces.jsonl", record)
    indexed(folder / "x.sqlite", folder / "run")

    def inspect(number: int, *options: object) -> Done:
        return rltracer("inspect", folder / "x.sqlite", "--trajectory", number, *options)

    return inspect


@pytest.mark.parametrize(
    ("number", "lines"),
    [
        (1, ["expected answer: 42"]),
        (3, ["expected answer: def f():␊    return 42␊reward 1 · advantage 0"]),
        (4, ["expected answer: ␛[2J\\u202e<b>"]),
        (5, ["expected answer: not recorded"]),
    ],
)
def test_it_stands_in_a_line_under_the_outcome(shown: Any, number: int, lines: list[str]) -> None:
    printed = shown(number).stdout.splitlines()
    assert printed[2].startswith("unscored (")
    assert printed[3 : 3 + len(lines)] == lines
    assert printed[3 + len(lines)].startswith("reward ")


def test_a_long_one_is_cut_unless_all_is_asked_for(shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = shown(2).stdout.splitlines()
    assert max(map(width_of, printed)) <= 80
    said = "\n".join(printed[3 : printed.index(next(line for line in printed if line.startswith("reward ")))])
    assert said.startswith("expected answer: word word ")
    assert (said.count("word"), said.splitlines()[-1]) == (60, "… 203 of 503 characters more; --full shows them")
    assert shown(2, "--full").stdout.splitlines()[3] == f"expected answer: {LONG}"


def test_the_lines_of_one_stand_behind_a_margin(shown: Any) -> None:
    printed = shown(3, "--full").stdout.splitlines()
    assert printed[3:7] == ["expected answer:", "│ def f():", "│     return 42", "│ reward 1 · advantage 0"]


@pytest.mark.parametrize(
    ("other", "line"),
    [
        (7, "  expected answer    42                            42"),
        (5, "≠ expected answer    42                            –"),
        (4, "≠ expected answer    42                            ␛[2J\\u202e<b>"),
    ],
)
def test_both_stand_beside_each_other(shown: Any, other: int, line: str) -> None:
    assert line in shown(1, "--with", other).stdout.splitlines()


def test_long_ones_are_told_apart(shown: Any) -> None:
    [line] = [line for line in shown(2, "--with", 6).stdout.splitlines() if "expected answer" in line]
    assert line == "≠ expected answer    word word word word word wo…  word word…end of another one"


def test_none_is_no_line_of_the_table(shown: Any) -> None:
    assert "expected" not in shown(5, "--with", 5).stdout


def test_programs_get_it_as_recorded(shown: Any) -> None:
    assert [json.loads(shown(number, "--json").stdout)["metadata"]["truth"] for number in (3, 5)] == [CODE, None]
    told = json.loads(shown(1, "--with", 2, "--json").stdout)["trajectories"]
    assert [one["truth"] for one in told] == ["42", LONG]
