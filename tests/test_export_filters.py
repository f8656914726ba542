"""Which trajectories the filters of an export keep: errors, truncation, what was trained on, and recorded fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import ExportError, ExportPreferences, FieldFilter, TraceDataExporter
from tests.export_runs import chosen, funnel, indexed, inspect, rollout, spec, write_steps
from tests.indexing import index
from tests.layouts import append, episode

ERRORS: list[tuple[str, dict[str, Any], bool]] = [
    ("no error", {}, True),
    ("error", {"ok": False, "stop_condition": "error", "errors": [{"type": "X"}]}, False),
    ("sandbox_error", {"ok": False, "stop_condition": "sandbox_error", "errors": [{"type": "X"}]}, False),
    ("agent_timeout", {"ok": False, "stop_condition": "agent_timeout", "errors": [{"type": "X"}]}, False),
    ("no reason", {"ok": False, "stop_condition": None, "errors": [{"type": "X"}]}, False),
    ("after the answer", {"ok": False, "stop_condition": "agent_completed", "errors": [{"type": "X"}]}, True),
    ("scoring_error", {"ok": False, "stop_condition": "scoring_error", "errors": [{"type": "X"}]}, True),
    ("scoring_timeout", {"ok": False, "stop_condition": "scoring_timeout", "errors": [{"type": "X"}]}, True),
    ("a limit is no error", {"stop_condition": "max_turns"}, True),
]


@pytest.mark.parametrize(("facts", "kept"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS])
def test_generation_errors_are_dropped_and_scoring_errors_kept(
    tmp_path: Path, facts: dict[str, Any], kept: bool
) -> None:
    database = indexed(tmp_path, {1: [rollout("a", **facts)]})
    assert bool(chosen(spec(database))) is kept
    assert chosen(spec(database), keep_generation_errors=True) == ["a"]
    scored = kept and not facts.get("errors")
    assert bool(chosen(spec(database), drop_scoring_errors=True)) is scored


def test_an_episode_that_never_ran_is_a_generation_error(tmp_path: Path) -> None:
    append(
        tmp_path / "run" / "rollouts" / "step_1" / "train" / "all" / "traces.jsonl", episode([], errors=[{"type": "X"}])
    )
    index(tmp_path / "x.sqlite", tmp_path / "run")
    told = funnel(inspect(spec(tmp_path / "x.sqlite"), acceptance="any"))
    assert (told["accepted"], told["sampled without an error"]) == (1, 0)


def test_truncated_and_effective_are_options(tmp_path: Path) -> None:
    cut = rollout("cut", stop_condition="max_turns")
    root = write_steps(tmp_path / "run", {1: [cut, rollout("whole")]})
    append(root / "rollouts" / "step_1" / "train" / "effective" / "traces.jsonl", cut)
    index(tmp_path / "x.sqlite", root)
    assert chosen(spec(tmp_path / "x.sqlite")) == ["cut", "whole"]
    assert chosen(spec(tmp_path / "x.sqlite"), drop_truncated=True) == ["whole"]
    assert chosen(spec(tmp_path / "x.sqlite"), effective_only=True) == ["cut"]


FIELDS: list[tuple[FieldFilter, list[str]]] = [
    (FieldFilter("metrics.num_turns", minimum=2), ["b", "c"]),
    (FieldFilter("metrics.num_turns", minimum=2, maximum=2), ["b"]),
    (FieldFilter("metrics.num_turns", allowed_values=(1, 3)), ["a", "c"]),
    (FieldFilter("rewards.reward.score", minimum=0.5), ["a", "b", "c"]),
    (FieldFilter("rewards.reward", minimum=0.5), ["a", "b", "c"]),
    (FieldFilter("info.level", allowed_values=("hard",)), ["b"]),
    (FieldFilter("info.level", allowed_values=("hard",), include_missing=True), ["b", "c"]),
    (FieldFilter("info.level", allowed_values=("not recorded",)), ["c"]),
    (FieldFilter("info.level", allowed_values=("easy", "not recorded")), ["a", "c"]),
    (FieldFilter("task.data.note", allowed_values=("not recorded",)), ["b"]),
    (FieldFilter("info.level", minimum=0), []),
    (FieldFilter("info.level"), ["a", "b"]),
    (FieldFilter("tool_calls", minimum=1), ["b", "c"]),
    (FieldFilter("tools", allowed_values=("edit", "bash")), ["b", "c"]),
    (FieldFilter("tools", allowed_values=("edit",), include_missing=True), ["a"]),
    (FieldFilter("tools", minimum=0), []),
    (FieldFilter("agent.name", allowed_values=("agent",)), ["a", "b", "c"]),
    (FieldFilter("task.data.idx", allowed_values=(2,)), ["c"]),
    (FieldFilter("task.data.note", allowed_values=("x",)), ["a"]),
    (FieldFilter("task.data.note", include_missing=True, allowed_values=("x",)), ["a", "b"]),
    (FieldFilter("task.data.size", minimum=4, maximum=5), ["b"]),
    (FieldFilter("verifiers.version", allowed_values=("0.4.0",)), ["a", "b", "c"]),
    (FieldFilter("info.deep.er.than.it.is.indexed", minimum=1), ["c"]),
]


@pytest.fixture(scope="module")
def fields(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index whose records have various fields, some of which no index holds."""
    records = [
        rollout("a", "qa", info={"level": "easy"}, task={"idx": 0, "name": "qa", "note": "x"}),
        rollout("b", "qb", calls=1, info={"level": "hard"}, task={"idx": 1, "name": "qb", "size": 4.5}),
        rollout("c", "qc", calls=2, info={"deep": {"er": {"than": {"it": {"is": {"indexed": 1}}}}}},
                task={"idx": 2, "name": "qc", "size": "five", "note": "y"}),
    ]  # fmt: skip
    return indexed(tmp_path_factory.mktemp("fields"), {1: records})


@pytest.mark.parametrize(("one", "expected"), FIELDS, ids=[str(case[0]) for case in FIELDS])
def test_field_filters_by_columns_and_by_records(fields: Path, one: FieldFilter, expected: list[str]) -> None:
    assert chosen(spec(fields), field_filters=(one,)) == expected


def test_filters_by_columns_and_records_agree() -> None:
    record = {"metrics": {"num_turns": 2.0, "flag": True}, "info": {"level": "hard"}}
    assert FieldFilter("metrics.num_turns", minimum=2).accepts(record)
    assert FieldFilter("metrics.flag", minimum=1).accepts(record)
    assert not FieldFilter("info.level", minimum=0).accepts(record)
    assert not FieldFilter("info.other").accepts(record)


def test_a_path_that_no_record_has_is_an_error_that_names_similar_ones(fields: Path) -> None:
    with pytest.raises(ExportError, match=r"metrics\.num_turn\. Similar: metrics\.num_turns"):
        chosen(spec(fields), field_filters=(FieldFilter("metrics.num_turn", maximum=8),))


def test_records_are_read_only_for_what_is_left_and_with_progress(fields: Path) -> None:
    told: list[tuple[str, int, int]] = []
    filters = (FieldFilter("metrics.num_turns", minimum=2), FieldFilter("task.data.note"))
    exporter = TraceDataExporter(
        [spec(fields)], ExportPreferences(field_filters=filters), lambda *facts: told.append(facts)
    )
    stages = funnel(exporter.inspect())
    assert told == [("Reading records", 1, 2), ("Reading records", 2, 2)]
    assert (stages["metrics.num_turns >= 2"], stages["task.data.note recorded"]) == (2, 1)
