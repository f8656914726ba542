"""Quotas and targets without rows of the same content: others of the draw take the places of repeats."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import ExportError, ExportPreferences, TraceDataExporter
from rltracer_sqlite.export import distinct as search
from tests.commands import rltracer
from tests.export_runs import export, funnel, indexed, inspect, rollout, spec, write_data
from tests.layouts import message, trace

Record = dict[str, Any]


def said(answers: str, question: str = "6 * 7?", **facts: Any) -> list[Record]:
    """Return a rollout of a prompt per letter, which is all that it says."""
    records = []
    for number, answer in enumerate(answers):
        record = rollout(f"{question}{number}{facts.get('passed', '')}", question, **facts)
        record["nodes"][-1]["message"]["content"] = answer
        records.append(record)
    return records


def answers(rows: list[Record]) -> list[str]:
    return [row["messages"][-1]["content"] for row in rows]


def test_a_target_is_met_with_rows_that_differ(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [*said("aaaab", "q1"), *said("aaacd", "q2"), *said("aaaaa", "q3")]})
    asked = ("--per-prompt", "all", "--target", 6, "--distinct")
    done = rltracer("export", database, *asked, "-o", tmp_path / "o.jsonl")
    assert "\nWrote 6 rows to " in done.stdout
    assert done.stderr == ""
    assert "Read and compared" not in done.stdout  # each of them was
    rows = export(database, tmp_path / "p.jsonl", per_prompt=None, target_count=6, distinct=True)
    assert len({str(row) for row in rows}) == len(rows) == 6
    refused = rltracer("export", database, *asked[:3], 7, "--distinct", "-o", tmp_path / "o.jsonl")
    assert (
        "7 trajectories asked for, 6 available, of 3 prompts. Of 15 trajectories the condition distinct leaves 6. "
        in (" ".join(refused.stderr.split()))
    )
    assert "leave out --distinct" in " ".join(refused.stderr.split())


def test_a_target_of_rows_that_differ_stays_spread_over_prompts(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [one for n in range(4) for one in said("aabbcd", f"q{n}")]})
    rows = export(database, tmp_path / "o.jsonl", per_prompt=None, target_count=10, distinct=True)
    counts = Counter(row["messages"][1]["content"] for row in rows)
    assert sorted(counts.values()) == [2, 2, 3, 3]
    assert len({str(row) for row in rows}) == 10


@pytest.mark.parametrize(
    "limits", [{}, {"global_per_prompt": 3}, {"order": "shortest"}, {"tool_call_sampling_power": 1}]
)
def test_a_quota_takes_the_first_of_the_draw_that_differ(tmp_path: Path, limits: dict[str, Any]) -> None:
    drawn = random.Random(7)
    records = [one for n in range(6) for one in said("".join(drawn.choices("aaaaaaabcd", k=20)), f"q{n}")]
    drawn.shuffle(records)
    database = indexed(tmp_path, {1: records})
    order = {name: value for name, value in limits.items() if name != "global_per_prompt"}
    every = export(database, tmp_path / "all.jsonl", per_prompt=None, include_provenance=True, **order)
    expected: dict[str, dict[str, str]] = {}
    for row in sorted(every, key=lambda row: row["trace_provenance"]["selection_slot"]):
        first = expected.setdefault(row["messages"][1]["content"], {})
        if len(first) < 3:
            first.setdefault(row["messages"][-1]["content"], row["trace_provenance"]["uid"])
    rows = export(database, tmp_path / "o.jsonl", per_prompt=3, distinct=True, include_provenance=True, **limits)
    assert {row["trace_provenance"]["uid"] for row in rows} == {uid for of in expected.values() for uid in of.values()}


def test_the_funnel_says_what_was_left_out(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: said("aaab")})
    result = TraceDataExporter(database, ExportPreferences(distinct=True)).write(tmp_path / "o.jsonl")
    told = funnel(result.summary)
    assert (told["well formed"], told["distinct"], told["per prompt"]) == (4, 2, 2)
    [note] = inspect(database, distinct=True)["row_notes"]
    assert note.startswith("Rows are compared when they are written")
    counts = [result.summary[name] for name in ("selected_count", "row_count", "repeated_rows_left_out")]
    assert counts == [2, 2, 0]


def test_few_rounds_find_a_row_that_differs_among_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = indexed(tmp_path, {1: said("a" * 300 + "b")})
    monkeypatch.setattr(search, "MOST_ROUNDS", 12)
    for limits in ({"per_prompt": 2}, {"per_prompt": None, "target_count": 2}):
        assert sorted(answers(export(database, tmp_path / "o.jsonl", distinct=True, **limits))) == ["a", "b"]
    monkeypatch.setattr(search, "MOST_ROUNDS", 1)
    with pytest.raises(ExportError, match="Too many of the selected rows say the same as others"):
        export(database, tmp_path / "o.jsonl", distinct=True, target_count=2, per_prompt=None)


def test_a_quota_of_repeats_without_end_is_written_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_ROUNDS", 3)
    database = indexed(tmp_path, {1: [*said("a" * 9), *said("x" * 9, passed=False)]})
    done = rltracer("export", database, "--mode", "preference", "--distinct", "-o", tmp_path / "o.jsonl")
    assert "Left out 1 row of the same content as one before.\nWrote 1 row to " in done.stdout


def test_pairs_are_replaced_by_pairs_that_differ(tmp_path: Path) -> None:
    records = [*said("aaab"), *said("xxxy", passed=False)]
    database = indexed(tmp_path, {1: records})
    asked: dict[str, Any] = {"mode": "preference", "target_count": 2, "distinct": True}
    rows = export(database, tmp_path / "o.jsonl", **asked)
    assert len({str(row) for row in rows}) == len(rows) == 2
    with pytest.raises(ExportError, match=r"9 pairs asked for, at most 2 available.*, or leave out distinct=True"):
        export(database, tmp_path / "o.jsonl", **asked | {"target_count": 9})


@pytest.mark.parametrize("mode", ["sft", "preference"])
def test_as_many_can_be_had_as_a_refusal_says(tmp_path: Path, mode: str) -> None:
    records: list[Record] = []
    for number, (passed, failed) in enumerate([("aab", "xxx"), ("aaa", "xx"), ("ab", "xyx"), ("cccc", "z")]):
        question = f"q{number // 2}"  # that of two is the same, as is what is answered
        records += [*said(passed, question, idx=number), *said(failed, question, idx=number, passed=False)]
    database = indexed(tmp_path, {1: records})
    asked: dict[str, Any] = {"mode": mode, "acceptance": "any", "distinct": True, "per_prompt": None}
    written, told = [], []
    for target in range(1, 9):
        try:
            rows = export(database, tmp_path / "o.jsonl", **asked, target_count=target)
        except ExportError as error:
            [known] = re.findall(r" asked for, (at most )?(\d+) available", str(error))
            told.append((bool(known[0]), int(known[1])))
        else:
            assert len({str(row) for row in rows}) == len(rows) == target
            written.append(target)
    most = len(written)
    assert written == [*range(1, most + 1)]
    assert told[0] == (False, most)
    assert {number for is_bound, number in told if not is_bound} == {most}
    assert all(number >= most for is_bound, number in told if is_bound)


@pytest.mark.parametrize(
    ("mode", "said_of"), [("sft", "the 2 trajectories"), ("preference", "the 1 pair")], ids=["sft", "pairs"]
)
def test_how_many_were_compared_is_told_where_others_were_not(tmp_path: Path, mode: str, said_of: str) -> None:
    records = [*said("abcdefgh"), *said("abcdefgh", passed=False)]
    asked: dict[str, Any] = {"mode": mode, "distinct": True, "target_count": 2 if mode == "sft" else 1}
    result = TraceDataExporter(indexed(tmp_path, {1: records}), ExportPreferences(**asked)).write(tmp_path / "o.jsonl")
    told = f"Read and compared were {said_of} that a quota or the target drew; the others may repeat them."
    assert told in result.summary["notes"]


def test_a_prompt_of_another_window_is_not_the_next_of_a_prompt(tmp_path: Path) -> None:
    steps = {step: [one for n in range(3) for one in said("ab", f"q{n}", idx=n)] for step in (1, 2)}
    database = indexed(tmp_path, steps)
    run = spec(database, rl_data_path=write_data(tmp_path / "data.jsonl", ["q0", "q1", "q2"]))
    asked: dict[str, Any] = {"mode": "rl", "window_size": 1, "distinct": True, "acceptance": "any"}
    assert len(export(run, tmp_path / "o.jsonl", **asked, target_count=3)) == 3
    assert len(export(run, tmp_path / "o.jsonl", **asked)) == 3
    with pytest.raises(ExportError, match="4 rows asked for, at most 3 available, of 3 prompts"):
        export(run, tmp_path / "o.jsonl", **asked, target_count=4)


def test_what_cannot_be_a_row_is_replaced_as_well(tmp_path: Path) -> None:
    nameless = message("assistant", tool_calls=[{"id": "c", "name": "", "arguments": "{}"}])
    odd = [trace([message("user", "6 * 7?"), nameless, message("assistant", f"{n}")], id=f"odd{n}") for n in range(3)]
    good = [trace([message("user", "6 * 7?"), message("assistant", said)], id=f"g{n}") for n, said in enumerate("aab")]
    database = indexed(tmp_path, {1: [*odd, *good]})
    exporter = TraceDataExporter(database, ExportPreferences(acceptance="any", distinct=True))
    result = exporter.write(tmp_path / "o.jsonl")
    assert result.row_count == 2
    assert result.summary["rejected"].keys() == {"tool call without a name"}
    with exporter.prepared() as prepared:
        assert b"".join(prepared.chunks()) == (tmp_path / "o.jsonl").read_bytes()


@pytest.mark.parametrize("mode", ["sft", "rl"])
def test_rows_of_another_run_are_repeats_too(tmp_path: Path, mode: str) -> None:
    databases = [indexed(tmp_path, {1: [*said("aab", "q"), *said("ab", "r")]}, name) for name in ("one", "two")]
    asked: dict[str, Any] = {"mode": mode, "per_prompt": None, "rl_from_trace": True, "distinct": True}
    most, unit = (4, "trajectories") if mode == "sft" else (2, "rows")
    rows = export(databases, tmp_path / "o.jsonl", **asked, target_count=most)
    assert len({str(row) for row in rows}) == len(rows) == most
    with pytest.raises(ExportError, match=f"{most + 1} {unit} asked for, {most} available"):
        export(databases, tmp_path / "o.jsonl", **asked, target_count=most + 1)
