"""`rltracer inspect --trajectory A --with B`: what differs is never called the same, and looks different."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.cli.columns import figure, width_of
from rltracer_sqlite.comparison import is_same, measures, policy_versions, values_apart
from tests.areal_rows import write_areal
from tests.commands import indexed, rltracer
from tests.layouts import append, message, tool_call, trace

ASKED = message("user", "How many?")
Beside = Callable[..., list[str]]


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Beside:
    """Return a function that sets two traces side by side in 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def compare(left: dict[str, Any], right: dict[str, Any], *options: str) -> list[str]:
        if not (tmp_path / "x.sqlite").exists():
            for one in (left, right):
                append(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", one)
            indexed(tmp_path / "x.sqlite", tmp_path / "run")
        return rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1, "--with", 2, *options).stdout.splitlines()

    return compare


def test_a_span_of_policy_versions_is_not_its_first_one(tmp_path: Path) -> None:
    indexed(tmp_path / "x.sqlite", write_areal(tmp_path / "run", [(0, 0), (0, 1)]))
    lines = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1, "--with", 2).stdout.splitlines()
    assert next(line.split() for line in lines if "policy version" in line) == [
        "≠",
        "policy",
        "version",
        "0",
        "0",
        "–",
        "1",
    ]
    assert not any("tail_version" in line for line in lines)


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [(0, 1.0, "0 – 1"), (3, 3.0, 3), (3, None, 3), (None, 1.0, None), (3, "x", 3), (3, math.inf, 3), (3, 3.5, 3)],
)
def test_the_policy_versions_of_a_trajectory(first: int | None, last: object, said: object) -> None:
    assert policy_versions({"policy_version": first, "info_tail_version": last}) == said


def test_rewards_and_metrics_that_differ_have_a_line_and_the_others_are_listed(beside: Beside) -> None:
    said = [ASKED, message("assistant", "Three.")]
    left = {"ok": {"score": 1.0, "weight": 0.5}, "form": {"score": 1.0, "weight": 1.0}}
    right = {"ok": {"score": 1.0, "weight": 0.25}, "form": {"score": 1.0, "weight": 1.0}}
    lines = beside(
        trace(said, rewards=left, metrics={"a": 1, "deep": {"b": 0.12345}, "c": [], "only": ""}),
        trace(said, rewards=right, metrics={"a": 1, "deep": {"b": 0.12346}, "c": []}),
    )
    place = lines.index("  named rewards: 1 differs, 1 is the same: form 1")
    assert [line.split() for line in lines[place + 1 : place + 5]] == [
        ["≠", "ok", "1", "×", "0.5", "1", "×", "0.25"],
        ["metrics:", "2", "differ,", "2", "are", "the", "same:", "a", "1,", "c", "empty"],
        ["≠", "deep.b", "0.12345", "0.12346"],
        ["≠", "only", "empty", "–"],
    ]
    told = json.loads("\n".join(beside({}, {}, "--json")))["trajectories"]
    assert [one["metrics"] for one in told] == [
        {"a": 1, "deep.b": 0.12345, "c": [], "only": ""}, {"a": 1, "deep.b": 0.12346, "c": []}
    ]  # fmt: skip


def test_hundreds_of_metrics_are_bounded_and_full_shows_all(beside: Beside) -> None:
    said = [ASKED, message("assistant", "Three.")]
    many = [
        {**{f"same_{n}": 1 for n in range(200)}, **{f"request_info.tool_{n}": n + add for n in range(300)}}
        for add in (0, 1)
    ]
    lines = beside(*(trace(said, metrics=one) for one in many))
    assert sum(line.startswith("≠") and "tool_" in line for line in lines) == 20
    assert "  … 280 metrics more that differ; --full shows all" in lines
    assert next(line for line in lines if "metrics:" in line).startswith(
        "  metrics: 300 differ, 200 are the same: same_0 1"
    )
    assert max(map(width_of, lines)) <= 80
    assert len(lines) < 60
    full = beside({}, {}, "--full")
    assert sum(line.startswith("≠") and "tool_" in line for line in full) == 300
    assert "same_199 1" in " ".join(map(str.strip, full))


def test_texts_that_begin_alike_are_told_apart(beside: Beside) -> None:
    said = [ASKED, message("assistant", "Three.")]
    lines = beside(*(trace(said, stop_condition=f"the limit of the number of turns was met: {n}") for n in (1, 2)))
    cells = next(line for line in lines if line.startswith("≠ stopped"))
    assert (cells[21:49].rstrip()[-2:], cells.rstrip()[-2:]) == ("…1", "…2")


@pytest.mark.parametrize(
    ("one", "other", "same", "shown"),
    [
        (0.12345, 0.12346, False, ("0.12345", "0.12346")),
        (1.0, 1.00001, False, ("1", "1.00001")),
        (0.1 + 0.2, 0.3, True, ("0.3", "0.3")),
        (math.nan, math.nan, True, ("nan", "nan")),
        (0, None, False, ("0", None)),
        (False, True, False, ("no", "yes")),
        ("", [], False, ("empty", "empty")),
        ([1, 2], [1, 3], False, ("[1, 2]", "[1, 3]")),
        ((1.0, 0.5), 1.0, False, ("1 × 0.5", "1")),
    ],
)  # fmt: skip
def test_values_that_differ_look_different(one: object, other: object, same: bool, shown: tuple[str, ...]) -> None:
    assert (is_same(one, other), values_apart(figure, one, other)) == (same, shown)


def test_what_cannot_be_read_is_compared_by_the_index() -> None:
    rows = [{"reward_ok": 1.0, "metric_a_b": 2.0}, {"reward_ok": 0.0, "metric_a_b": 2.0}]
    rewards, metrics = measures(rows, [{"rewards": {}, "metrics": {"a": {"b": 2.0}}}, None])
    assert (rewards.differing, metrics.differing, metrics.same) == ({"ok": (1.0, 0.0)}, {}, {"a_b": 2.0})


def last_of(number: int, reasoning: str) -> dict[str, Any]:
    if reasoning:
        return message("assistant", "So.", reasoning_content=f"Twelve pens is {number} packs")
    return message("assistant", tool_calls=[tool_call("c", "bash", f'{{"command": "echo once {number}"}}')])


@pytest.mark.parametrize(
    ("reasoning", "shown"),
    [("yes", ["│ (reasoning) …{} packs", "So."]), ("", ['→ bash(…{}"}})'])],
)
def test_the_kind_of_a_cut_piece_is_named(beside: Beside, reasoning: str, shown: list[str]) -> None:
    lines = beside(*(trace([ASKED, last_of(number, reasoning)]) for number in (3, 4)))
    first = next(place for place, line in enumerate(lines) if line.startswith("──"))
    pieces = [line for line in lines[first:] if not line.startswith("──")]
    assert pieces == [line.format(number) for number in (3, 4) for line in shown]


def test_reasoning_that_ends_where_the_other_goes_on_is_named(beside: Beside) -> None:
    thought = "x" * 60
    said = [message("assistant", reasoning_content=text) for text in (thought, f"{thought} more")]
    lines = beside(*(trace([ASKED, one]) for one in said))
    assert "│ (reasoning) … and ends here" in lines
    assert "│ (reasoning) … more" in lines


def test_the_name_of_a_tool_that_differs_is_told_whole(beside: Beside) -> None:
    said = [message("assistant", tool_calls=[tool_call("c", name, "{}")]) for name in ("read file", "read files")]
    lines = beside(*(trace([ASKED, one]) for one in said))
    assert [line for line in lines if line.startswith("→")] == ["→ read file({})", "→ read files({})"]


def test_what_holds_nothing_is_called_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    metrics = {"info": {"tool_errors": [], "tool_outputs": "", "usage": {}, "calls": 0}}
    append(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", trace([ASKED], metrics=metrics))
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    lines = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1).stdout.splitlines()
    assert "  info: tool_errors empty, tool_outputs empty, usage empty, calls 0" in lines


def test_a_long_metric_is_cut_unless_all_is_asked_for(tmp_path: Path) -> None:
    record = trace([ASKED], metrics={"list": list(range(2000))})
    append(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", record)
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    short, whole = (
        " ".join(rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1, *options).stdout.split())
        for options in ([], ["--full"])
    )
    assert "list [0, 1, 2" in short
    assert "1999" not in short
    assert "1998, 1999]" in whole
