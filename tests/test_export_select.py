"""What is selected: windows, outcomes, errors, filters, quotas, and the funnel that tells of each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import (
    DifficultyFilter,
    ExportError,
    FieldFilter,
    TableRows,
    TraceDataExporter,
    TraceRunSpec,
)
from rltracer_sqlite.roots import RootNotAllowed, Roots
from tests.export_runs import chosen, export, funnel, indexed, inspect, rollout, spec, uids, write_steps
from tests.indexing import index, rows, value
from tests.layouts import append, episode, message


def test_step_0_counts_unless_it_is_excluded(tmp_path: Path) -> None:
    database = indexed(tmp_path, {0: [rollout("zero")], 1: [rollout("one", "b")]})
    assert chosen(spec(database)) == ["one", "zero"]
    assert chosen(spec(database, step_start=1)) == ["one"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [((None, None), "1 2 3 4"), ((2, 3), "2 3"), ((None, 1), "1"), ((4, None), "4"), ((9, None), "")],
)
def test_a_range_of_steps_is_inclusive(tmp_path: Path, steps: tuple[int | None, int | None], expected: str) -> None:
    database = indexed(tmp_path, {step: [rollout(str(step), f"q{step}")] for step in (1, 2, 3, 4)})
    assert chosen(spec(database, step_start=steps[0], step_end=steps[1])) == expected.split()


def test_windows_begin_at_the_first_step_and_end_with_the_range(tmp_path: Path) -> None:
    database = indexed(tmp_path, {step: [rollout(str(step))] for step in (3, 4, 5, 7, 9)})
    told = inspect(spec(database, step_end=8), window_size=2)["windows"]
    assert [(w["step_start"], w["step_end"], w["trace_count"]) for w in told] == [(3, 4, 2), (5, 6, 1), (7, 8, 1)]
    told = inspect(spec(database, step_start=4), window_size=2)["windows"]
    assert [(w["step_start"], w["step_end"], w["trace_count"]) for w in told] == [(4, 5, 2), (6, 7, 1), (8, 9, 1)]


@pytest.mark.parametrize(
    ("acceptance", "expected"), [("correct", ["yes"]), ("incorrect", ["no"]), ("any", ["no", "unscored", "yes"])]
)
def test_unscored_is_neither_correct_nor_incorrect(tmp_path: Path, acceptance: str, expected: list[str]) -> None:
    records = [rollout("yes"), rollout("no", passed=False), rollout("unscored", passed=None)]
    assert chosen(spec(indexed(tmp_path, {1: records})), acceptance=acceptance, per_prompt=9) == expected


def test_acceptance_follows_the_success_rule_of_the_run(tmp_path: Path) -> None:
    database = indexed(
        tmp_path, {1: [rollout("a", calls=3), rollout("b", passed=True)]}, success=("metrics.num_turns", 2)
    )
    assert chosen(spec(database), per_prompt=9) == ["a"]
    assert inspect(spec(database))["runs"][0]["success"] == "metrics.num_turns >= 2"


def test_a_prompt_of_which_nothing_is_scored_has_no_difficulty(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a", passed=None)]})
    assert chosen(spec(database), acceptance="any") == ["a"]
    assert chosen(spec(database), acceptance="any", difficulty=DifficultyFilter(min_pass_rate=0)) == []
    assert chosen(spec(database), acceptance="any", difficulty=DifficultyFilter(max_pass_rate=1)) == []


@pytest.mark.parametrize(("split", "expected"), [("train", ["t"]), ("eval", ["e"]), (None, ["e", "t"])])
def test_a_split_is_chosen_and_train_is_the_default(tmp_path: Path, split: str | None, expected: list[str]) -> None:
    write_steps(tmp_path / "run", {1: [rollout("t", "a")]})
    write_steps(tmp_path / "run", {1: [rollout("e", "b")]}, split="eval")
    index(tmp_path / "x.sqlite", tmp_path / "run")
    assert chosen(spec(tmp_path / "x.sqlite", split=split)) == expected


def test_trajectories_of_an_unknown_split_count_as_train(tmp_path: Path) -> None:
    append(tmp_path / "outputs" / "env--model" / "x" / "traces.jsonl", episode([rollout("a")]))
    index(tmp_path / "x.sqlite", tmp_path / "outputs")
    assert value(tmp_path / "x.sqlite", "select split is null from trajectories")
    assert chosen(spec(tmp_path / "x.sqlite")) == ["a"]
    assert chosen(spec(tmp_path / "x.sqlite", split="eval")) == []


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
    (FieldFilter("info.level", minimum=0), []),
    (FieldFilter("info.level"), ["a", "b"]),
    (FieldFilter("tool_calls", minimum=1), ["b", "c"]),
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


def test_filters_by_columns_and_records_agree(fields: Path) -> None:
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
    from rltracer_sqlite.export import ExportPreferences

    exporter = TraceDataExporter(
        [spec(fields)], ExportPreferences(field_filters=filters), lambda *facts: told.append(facts)
    )
    stages = funnel(exporter.inspect())
    assert told == [("Reading records", 1, 2), ("Reading records", 2, 2)]
    assert (stages["metrics.num_turns >= 2"], stages["task.data.note recorded"]) == (2, 1)


def test_the_funnel_tells_what_every_stage_drops(tmp_path: Path) -> None:
    records = [
        *(rollout(f"easy{n}", "easy") for n in range(3)),
        *(rollout(f"mid{n}", "mid", passed=n < 4, calls=n) for n in range(5)),
        rollout("broken", "mid", ok=False, stop_condition="error"),
    ]
    told = inspect(
        spec(indexed(tmp_path, {1: records})), difficulty=DifficultyFilter(max_pass_rate=0.9),
        field_filters=(FieldFilter("tool_calls", maximum=2),), per_prompt=2, target_count=1,
    )  # fmt: skip
    assert [(step["stage"], step["left"], step["dropped"]) for step in told["funnel"]] == [
        ("available", 9, 0),
        ("accepted", 8, 1),
        ("difficulty", 5, 3),
        ("file present", 5, 0),
        ("sampled without an error", 4, 1),
        ("tool_calls <= 2", 3, 1),
        ("well formed", 3, 0),
        ("per prompt", 2, 1),
        ("target", 1, 1),
    ]


def test_a_target_that_cannot_be_met_names_what_is_available(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout(f"t{n}", f"q{n % 2}") for n in range(6)]})
    with pytest.raises(ExportError, match=r"5 rows were asked for, and 4 are available, of 2 prompt groups"):
        export(spec(database), tmp_path / "out.jsonl", target_count=5)
    assert not list(tmp_path.glob("*out*"))


def test_global_per_prompt_counts_over_all_windows_and_keeps_every_group_first(tmp_path: Path) -> None:
    steps = {step: [rollout(f"a{step}{n}", "a") for n in range(3)] for step in (1, 2, 3)}
    steps[1] += [rollout(f"b{n}", "b") for n in range(3)]
    found = chosen(spec(indexed(tmp_path, steps)), window_size=1, per_prompt=2, global_per_prompt=2)
    assert sorted(uid[0] for uid in found) == ["a", "a", "b", "b"]
    assert len({uid[:2] for uid in found if uid[0] == "a"}) == 2


def test_the_shortest_first(tmp_path: Path) -> None:
    records = [rollout(f"t{n}", calls=n) for n in (3, 0, 2, 1)]
    assert chosen(spec(indexed(tmp_path, {1: records})), order="shortest", per_prompt=2) == ["t0", "t1"]


def test_a_prompt_of_another_task_is_another_prompt(tmp_path: Path) -> None:
    records = [rollout(f"t{n}", task={"idx": n, "name": f"game {n}"}) for n in range(4)]
    assert len(chosen(spec(indexed(tmp_path, {1: records})), unique_prompts=True)) == 4


def test_prompts_that_differ_in_the_system_turn_only_are_two(tmp_path: Path) -> None:
    records = [rollout("a"), rollout("b")]
    records[1]["nodes"][0]["message"]["content"] = "Be long."
    assert len(chosen(spec(indexed(tmp_path, {1: records})), per_prompt=1)) == 2


def test_the_selection_does_not_depend_on_how_the_index_was_built(tmp_path: Path) -> None:
    records = [rollout(f"t{n}", f"q{n % 5}", passed=n % 3 > 0, calls=n % 4) for n in range(40)]
    write_steps(tmp_path / "one" / "run", {1: records[:20], 2: records[20:]})
    write_steps(tmp_path / "two" / "run", {2: reversed(records[20:]), 1: reversed(records[:20])})
    index(tmp_path / "one.sqlite", tmp_path / "one" / "run")
    for step in (2, 1):  # the other way round, and step by step
        index(tmp_path / "two.sqlite", tmp_path / "two" / "run", steps=lambda s, step=step: s == step)
    assert rows(tmp_path / "one.sqlite", "select uid from trajectories order by id") != rows(
        tmp_path / "two.sqlite", "select uid from trajectories order by id"
    )
    wanted: dict[str, Any] = {"window_size": 1, "target_count": 9, "tool_call_sampling_power": 1.0}
    for preferences in (wanted, {"per_prompt": 1}, {"unique_prompts": True}, {"global_per_prompt": 1}):
        found = [chosen(spec(tmp_path / f"{name}.sqlite"), **preferences) for name in ("one", "two")]
        assert found[0] == found[1]


def test_records_without_an_id_are_chosen_by_their_place_whatever_folder_was_indexed(tmp_path: Path) -> None:
    from tests.layouts import v0_row

    said = [message("user", "6 * 7?"), message("assistant", "42")]
    lines = [v0_row([*said[:1], message("assistant", f"42 {n}")], example_id=0) for n in range(9)]
    append(tmp_path / "run" / "rollouts" / "step_1" / "train_rollouts.jsonl", *lines)
    index(tmp_path / "a.sqlite", tmp_path / "run")
    index(tmp_path / "b.sqlite", tmp_path / "run" / "rollouts")
    places = [
        [row["messages"][1]["content"] for row in export(spec(tmp_path / name), tmp_path / "o.jsonl")]
        for name in ("a.sqlite", "b.sqlite")
    ]
    assert places[0] == places[1]


def test_an_index_that_moved_with_its_run_selects_the_same(tmp_path: Path) -> None:
    root = write_steps(tmp_path / "here" / "run", {1: [rollout(f"t{n}") for n in range(9)]})
    index(tmp_path / "here" / "x.sqlite", root)
    before = chosen(spec(tmp_path / "here" / "x.sqlite"))
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert chosen(spec(tmp_path / "there" / "x.sqlite")) == before


def test_rows_of_a_table_restrict_the_selection_and_not_the_pass_rate(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a"), rollout("b", passed=False), rollout("c", "other")]})
    ids = dict(rows(database, "select uid, id from trajectories"))
    only = spec(database, only=TableRows("trajectories", [ids["a"]]))
    [row] = export(only, tmp_path / "o.jsonl", include_provenance=True)
    assert (row["trace_provenance"]["uid"], row["trace_provenance"]["prompt_pass_rate"]) == ("a", 0.5)
    group = value(database, "select prompt_group_id from trajectories where uid = 'c'")
    assert chosen(spec(database, only=TableRows("prompt_groups", [group]))) == ["c"]
    assert funnel(inspect(only))["rows of the table"] == 1


def test_runs_of_one_index_and_of_several(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_steps(tmp_path / name, {1: [rollout(f"{name}{n}") for n in range(3)]})
    index(tmp_path / "two.sqlite", tmp_path / "a")
    index(tmp_path / "two.sqlite", tmp_path / "b")
    index(tmp_path / "one.sqlite", tmp_path / "c")
    specs = [TraceRunSpec.from_index(tmp_path / "two.sqlite", name) for name in ("b", "a")]
    found = export([*specs, tmp_path / "one.sqlite"], tmp_path / "o.jsonl", per_prompt=1)
    assert [uid[0] for uid in uids(found)] == ["b", "a", "c"]
    with pytest.raises(ExportError, match=r"Which run .* It holds: a, b"):
        chosen(TraceRunSpec.from_index(tmp_path / "two.sqlite"))


def test_a_run_that_nobody_vouched_for_is_selected_from_but_not_read(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a")]})
    foreign = spec(database, roots=Roots([tmp_path / "elsewhere"]))
    assert chosen(foreign) == ["a"]
    with pytest.raises(RootNotAllowed):
        export(foreign, tmp_path / "o.jsonl")


def test_a_folder_is_indexed_for_the_asked_steps_only(tmp_path: Path, own_home: Path) -> None:
    root = write_steps(tmp_path / "run", {step: [rollout(str(step), f"q{step}")] for step in (1, 2, 3)})
    assert chosen(TraceRunSpec(root, step_start=2, step_end=2)) == ["2"]
    [cached] = (own_home / "cache").rglob("*.sqlite")
    assert rows(cached, "select distinct step from trajectories") == [(2,)]
    assert not list(root.rglob("*.sqlite"))


def test_the_name_of_a_run_can_be_given(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a")]})
    export(spec(database, name="mine"), tmp_path / "o.jsonl")
    told = json.loads((tmp_path / "o.jsonl.summary.json").read_text())
    assert [run["name"] for run in told["runs"]] == [window["run"] for window in told["windows"]] == ["mine"]


def test_a_damaged_index_is_a_sentence(tmp_path: Path) -> None:
    import sqlite3

    database = indexed(tmp_path, {1: [rollout("a")]})
    connection = sqlite3.connect(database)
    connection.execute("drop table prompts")
    connection.close()
    with pytest.raises(ExportError, match="cannot be read: no such table"):
        chosen(spec(database))
