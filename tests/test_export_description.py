"""Each sentence of the exporter's description, as a test of its name."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import (
    Acceptance,
    DifficultyFilter,
    ExportPreferences,
    FieldFilter,
    TraceDataExporter,
    TraceRunSpec,
)
from rltracer_sqlite.export.rows import DATADEV_COLUMNS
from tests.export_runs import chosen, export, indexed, inspect, rollout, spec, uids, write_data, write_steps
from tests.layouts import message, tool_call


def test_builds_jsonl_directly_from_one_or_more_structured_prime_rl_runs(tmp_path: Path) -> None:
    first = write_steps(tmp_path / "first", {1: [rollout("a")]})
    second = write_steps(tmp_path / "second", {1: [rollout("b")]})
    rows = export([TraceRunSpec(first), TraceRunSpec(second)], tmp_path / "out.jsonl")
    assert uids(rows) == ["a", "b"]


@pytest.mark.parametrize("place", ["", "run_default", "run_default/rollouts"])
def test_a_run_can_be_an_experiment_directory_its_run_default_or_its_rollouts(tmp_path: Path, place: str) -> None:
    write_steps(tmp_path / "exp" / "run_default", {1: [rollout(f"t{n}") for n in range(8)]})
    rows = export(TraceRunSpec(tmp_path / "exp" / place), tmp_path / "out.jsonl")
    whole = export(TraceRunSpec(tmp_path / "exp"), tmp_path / "whole.jsonl")
    assert len(rows) == 2
    assert rows == whole


def test_sft_mode_selects_complete_trajectories(tmp_path: Path) -> None:
    [row] = export(spec(indexed(tmp_path, {1: [rollout("a", calls=2)]})), tmp_path / "out.jsonl", mode="sft")
    roles = [said["role"] for said in row["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]


def test_the_sft_example_as_it_is_written(tmp_path: Path) -> None:
    easy = [rollout(f"easy{n}", "easy") for n in range(4)]
    middle = [rollout(f"middle{n}", "middle", passed=n < 2) for n in range(4)]
    long = [rollout("long", "middle", metrics={"correct_final_label": 1.0, "num_turns": 9.0})]
    write_steps(tmp_path / "first", {1: easy + middle + long, 801: [rollout("late", "middle")]})
    write_steps(tmp_path / "second", {400: [rollout("x", "hard"), rollout("y", "hard", passed=False)]})
    exporter = TraceDataExporter(
        runs=[
            TraceRunSpec(tmp_path / "first", step_end=800),
            TraceRunSpec(tmp_path / "second", step_end=400),
        ],
        preferences=ExportPreferences(
            mode="sft",
            acceptance=Acceptance.CORRECT,
            difficulty=DifficultyFilter(min_pass_rate=0.25, max_pass_rate=0.75),
            field_filters=(
                FieldFilter("metrics.num_turns", maximum=8),
                FieldFilter("rewards.reward.score", minimum=0),
            ),
            window_size=100,
            per_prompt=2,
            target_count=3,
            seed=17,
        ),
    )
    result = exporter.write_jsonl(tmp_path / "correct_sft.jsonl")
    rows = [json.loads(line) for line in result.output_path.read_text().splitlines()]
    assert sorted(uids(rows)) == ["middle0", "middle1", "x"]
    assert (result.selected_count, result.available_count, result.eligible_prompt_groups) == (3, 3, 2)


def test_rl_mode_writes_datadev_rows_whose_prompt_precedes_the_first_assistant_turn(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a", "q0", calls=1)]})
    data = write_data(tmp_path / "train.jsonl", ["q0"])
    [row] = export(spec(database, rl_data_path=data), tmp_path / "out.jsonl", mode="rl")
    assert [said["role"] for said in row["prompt"]] == ["system", "user"]
    assert row["prompt"][1]["content"] == "q0"


def test_the_rl_example_as_it_is_written(tmp_path: Path) -> None:
    records = [rollout(f"{q}{n}", f"q{q}", passed=n < q, idx=q) for q in range(4) for n in range(4)]
    root = write_steps(tmp_path / "run", {1: records[::2], 700: records[1::2]})
    data = write_data(tmp_path / "train.jsonl", [f"q{q}" for q in range(4)])
    rl_exporter = TraceDataExporter(
        [TraceRunSpec(root, step_end=800, rl_data_path=data)],
        ExportPreferences(
            mode="rl",
            acceptance="any",
            difficulty=DifficultyFilter(min_difficulty=0.25),
            window_size=None,
            unique_prompts=True,
            target_count=3,
        ),
    )
    rl_exporter.write_jsonl(tmp_path / "rl_prompts.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rl_prompts.jsonl").read_text().splitlines()]
    assert sorted(row["record_id"] for row in rows) == ["r1", "r2", "r3"]


def test_no_window_size_means_one_pass_rate_over_the_complete_step_range(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a")], 500: [rollout("b", passed=False)]})
    rows = export(spec(database), tmp_path / "out.jsonl", window_size=None, include_provenance=True)
    assert [row["trace_provenance"]["prompt_pass_rate"] for row in rows] == [0.5]


@pytest.mark.parametrize("names", [("min_pass_rate", "max_pass_rate"), ("min_difficulty", "max_difficulty")])
def test_difficulty_is_identical_to_prompt_pass_rate(tmp_path: Path, names: tuple[str, str]) -> None:
    records = [rollout(f"{q}{n}", f"q{q}", passed=n < q) for q in range(5) for n in range(4)]
    bounds = DifficultyFilter(**dict(zip(names, (0.25, 0.5), strict=True)))
    database = indexed(tmp_path, {1: records})
    rows = export(spec(database), tmp_path / "out.jsonl", difficulty=bounds, include_provenance=True)
    assert {row["trace_provenance"]["difficulty"] for row in rows} == {0.25, 0.5}
    assert all(row["trace_provenance"]["prompt_pass_rate"] == row["trace_provenance"]["difficulty"] for row in rows)


def test_pass_rate_is_of_all_scored_rollouts_of_a_prompt_in_each_window(tmp_path: Path) -> None:
    unscored = rollout("unscored", passed=None)
    dropped = rollout("dropped", passed=False, metrics={"correct_final_label": 0.0, "num_turns": 99.0})
    steps = {1: [rollout("a"), unscored], 2: [dropped], 3: [rollout("b")]}
    filters = (FieldFilter("metrics.num_turns", maximum=8),)
    rows = export(
        spec(indexed(tmp_path, steps)), tmp_path / "out.jsonl",
        window_size=2, field_filters=filters, include_provenance=True,
    )  # fmt: skip
    assert {row["trace_provenance"]["uid"]: row["trace_provenance"]["prompt_pass_rate"] for row in rows} == {
        "a": 0.5,
        "b": 1.0,
    }


def test_rl_mode_emits_at_most_one_copy_of_a_prompt_per_run_and_window(tmp_path: Path) -> None:
    records = {step: [rollout(f"{step}-{n}", "q0") for n in range(3)] for step in (1, 2, 3, 4)}
    first, second = indexed(tmp_path, records, "first"), indexed(tmp_path, records, "second")
    data = write_data(tmp_path / "train.jsonl", ["q0"])
    runs = [spec(first, rl_data_path=data), spec(second, rl_data_path=data)]
    rows = export(runs, tmp_path / "out.jsonl", mode="rl", window_size=2, per_prompt=3, include_provenance=True)
    places = [(row["trace_provenance"]["run"], row["trace_provenance"]["window_start"]) for row in rows]
    assert sorted(places) == [("first", 1), ("first", 3), ("second", 1), ("second", 3)]


@pytest.mark.parametrize("per_prompt", [1, 3, None])
def test_sft_mode_honors_per_prompt(tmp_path: Path, per_prompt: int | None) -> None:
    records = [rollout(f"{q}{n}", f"q{q}") for q in "ab" for n in range(5)]
    database = indexed(tmp_path, {1: records, 2: [rollout(f"later{n}", "qa") for n in range(5)]})
    rows = export(spec(database), tmp_path / "out.jsonl", per_prompt=per_prompt, window_size=1)
    assert len(rows) == 3 * (per_prompt or 5)


def test_every_eligible_group_receives_its_first_row_before_any_receives_a_second(tmp_path: Path) -> None:
    records = [rollout(f"{q}{n}", f"q{q}") for q in "abcdef" for n in range(4)]
    database = indexed(tmp_path, {1: records})
    for target, seed in ((6, 1), (6, 2), (7, 3), (11, 4)):
        rows = export(spec(database), tmp_path / "out.jsonl", target_count=target, seed=seed)
        counts = Counter(row["messages"][1]["content"] for row in rows)
        assert len(counts) == 6
        assert max(counts.values()) - min(counts.values()) <= 1
        assert sum(counts.values()) == target


def test_unique_prompts_keeps_one_row_of_a_prompt_across_all_runs_and_windows(tmp_path: Path) -> None:
    steps = {step: [rollout(f"{step}{q}", f"q{q}") for q in "ab"] for step in (1, 2)}
    runs = [spec(indexed(tmp_path, steps, name)) for name in ("first", "second")]
    rows = export(runs, tmp_path / "out.jsonl", window_size=1, unique_prompts=True)
    assert sorted(row["messages"][1]["content"] for row in rows) == ["qa", "qb"]


def test_deduplication_is_deterministic_and_happens_before_the_target(tmp_path: Path) -> None:
    steps = {step: [rollout(f"{step}{q}", f"q{q}") for q in "abc"] for step in range(1, 9)}
    database = indexed(tmp_path, steps)
    wanted = {"window_size": 1, "unique_prompts": True, "target_count": 3}
    first, other, again = (chosen(spec(database), seed=seed, **wanted) for seed in (1, 2, 1))
    assert first == again != other
    assert {uid[-1] for uid in first} == {uid[-1] for uid in other} == set("abc")


def test_by_default_output_rows_match_datadev_data_exactly(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a", "q0", calls=1)]})
    data = write_data(tmp_path / "train.jsonl", ["q0"])
    [sft] = export(spec(database), tmp_path / "sft.jsonl")
    [rl] = export(spec(database, rl_data_path=data), tmp_path / "rl.jsonl", mode="rl")
    assert list(sft) == ["messages", "tools"]
    assert rl == json.loads(data.read_text())


def test_sft_rows_contain_messages_and_optional_json_string_tools(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("plain", "q0"), rollout("tools", "q1", calls=1)]})
    rows = {row["messages"][1]["content"]: row for row in export(spec(database), tmp_path / "out.jsonl")}
    assert list(rows["q0"]) == ["messages"]
    [tool] = json.loads(rows["q1"]["tools"])
    assert (tool["type"], tool["function"]["name"]) == ("function", "bash")
    [without, _] = export(spec(database), tmp_path / "out.jsonl", include_tools=False)
    assert list(without) == ["messages"]


def test_rl_rows_are_losslessly_joined_through_task_data_idx(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a", "q2", idx=2)]})
    data = write_data(tmp_path / "train.jsonl", ["q0", "q1", "q2"])
    lines = data.read_text().splitlines()
    row = {**json.loads(lines[2]), "answer": "π " + "9" * 40, "rubric_index": 2**80, "tools": [{"name": "bash"}]}
    data.write_text("\n".join([lines[0], "", lines[1], json.dumps(row), ""]))
    [written] = export(spec(database, rl_data_path=data), tmp_path / "out.jsonl", mode="rl")
    assert written == row
    assert tuple(written) == DATADEV_COLUMNS
    assert isinstance(written["tools"], list)


def test_include_provenance_adds_a_trace_provenance_field(tmp_path: Path) -> None:
    database = indexed(tmp_path, {7: [rollout("a", calls=1)]})
    [plain] = export(spec(database), tmp_path / "out.jsonl")
    [row] = export(spec(database), tmp_path / "out.jsonl", include_provenance=True)
    told = row.pop("trace_provenance")
    assert row == plain
    assert (told["run"], told["step"], told["uid"], told["line"], told["byte_offset"]) == ("run", 7, "a", 1, 0)
    assert told["success"] is True
    assert (told["trajectory_id"], told["split"], told["env"]) == (1, "train", None)
    assert set(told) == set(documented_keys())
    file = tmp_path / "run" / told["file"]
    assert json.loads(file.read_bytes()[told["byte_offset"] :][: told["byte_length"]])["id"] == "a"


def documented_keys() -> Iterator[str]:
    """Yield the keys that the table of docs/export.md names."""
    text = (Path(__file__).parents[1] / "docs" / "export.md").read_text(encoding="utf-8")
    for line in text.partition("| key | is |\n| --- | --- |\n")[2].partition("\n\n")[0].splitlines():
        yield from re.findall(r"`(\w+)`", line.split("|")[1])


@pytest.mark.parametrize(
    "said",
    [
        {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"x": 1}'}}]},
        {"tool_calls": [tool_call("c1", "bash", '{"x": 1}')]},
        {"tool_calls": [json.dumps(tool_call("c1", "bash", '{"x": 1}'))]},
        {"tool_calls": [{"id": "c1", "name": "bash", "arguments": {"x": 1}}]},
        {"tool_call": tool_call("c1", "bash", '{"x": 1}')},
        {"function_call": {"id": "c1", "name": "bash", "arguments": '{"x": 1}'}},
    ],
    ids=["nested", "flat", "JSON string", "arguments as an object", "singular", "function_call"],
)
def test_tool_calls_are_canonicalized_to_the_nested_form(tmp_path: Path, said: dict[str, Any]) -> None:
    record = rollout("a")
    record["nodes"][2]["message"].update(said)
    [row] = export(spec(indexed(tmp_path, {1: [record]})), tmp_path / "out.jsonl")
    assert row["messages"][2]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"x": 1}'}}
    ]


@pytest.mark.parametrize("call", [{"id": "c1", "arguments": "{}"}, {"function": {"name": ""}}, "not a call", 7])
def test_calls_without_a_function_name_are_rejected_rather_than_emitted(tmp_path: Path, call: Any) -> None:
    records = [rollout("good"), rollout("bad")]
    records[1]["nodes"][2]["message"] = message("assistant", "x", tool_calls=[call])
    rows = export(spec(indexed(tmp_path, {1: records})), tmp_path / "out.jsonl")
    assert uids(rows) == ["good"]
    told = json.loads((tmp_path / "out.jsonl.summary.json").read_text())
    assert told["rejected"] == {"tool call without a name": 1}
    assert inspect(spec(tmp_path / "run.sqlite"))["selected_count"] == 2
