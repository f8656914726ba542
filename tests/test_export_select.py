"""What is selected: steps and windows, outcomes, splits, quotas and order, and the funnel that tells of each."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import Acceptance, DifficultyFilter, ExportError, ExportPreferences, FieldFilter, TableRows
from rltracer_sqlite.export.conditions import ACCEPTED
from rltracer_sqlite.export.runs import open_runs
from rltracer_sqlite.export.selection import Selection
from rltracer_sqlite.export.stages import FIELD, STAGES, meaning
from rltracer_sqlite.export.summary import summary
from rltracer_sqlite.index.contents import nothing_there
from tests.export_runs import chosen, export, indexed, inspect, rollout, spec, write_steps
from tests.index_factory import make_index
from tests.indexing import index, rows, value
from tests.layouts import append, episode, message, v0_row


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
    ("acceptance", "expected"),
    [
        ("correct", ["yes"]),
        ("passed", ["yes"]),
        ("incorrect", ["no"]),
        ("failed", ["no"]),
        ("any", ["no", "unscored", "yes"]),
    ],
)
def test_unscored_has_neither_passed_nor_failed(tmp_path: Path, acceptance: str, expected: list[str]) -> None:
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
        ("scored", 9, 0),
        ("accepted", 8, 1),
        ("difficulty", 5, 3),
        ("file present", 5, 0),
        ("sampled without an error", 4, 1),
        ("tool_calls <= 2", 3, 1),
        ("well formed", 3, 0),
        ("per prompt", 2, 1),
        ("target", 1, 1),
    ]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"acceptance": "correct"}, [("available", 6, 0), ("scored", 5, 1), ("accepted", 3, 2)]),
        ({"acceptance": "incorrect"}, [("available", 6, 0), ("scored", 5, 1), ("accepted", 2, 3)]),
        ({"acceptance": "any"}, [("available", 6, 0), ("accepted", 6, 0)]),
        ({"mode": "preference"}, [("available", 6, 0), ("reward known", 5, 1)]),
    ],
)
def test_what_is_unscored_is_dropped_in_a_line_of_its_own(
    tmp_path: Path, wanted: dict[str, str], expected: list[tuple[str, int, int]]
) -> None:
    outcomes = (True, True, True, False, False, None)
    database = indexed(tmp_path, {1: [rollout(f"t{number}", passed=one) for number, one in enumerate(outcomes)]})
    funnel = inspect(spec(database), **wanted)["funnel"]
    assert [(step["stage"], step["left"], step["dropped"]) for step in funnel[: len(expected)]] == expected
    assert funnel[len(expected)]["stage"] == "difficulty"


def test_every_line_of_a_funnel_has_its_meaning(tmp_path: Path) -> None:
    run = spec(indexed(tmp_path, {1: [rollout(f"t{n}", passed=n < 2) for n in range(4)]}))
    some = dataclasses.replace(run, only=TableRows("trajectories", [1, 2, 3, 4]), ids=["t0", "t1", "t2"])
    usual: dict[str, Any] = {
        "drop_truncated": True, "drop_scoring_errors": True, "unique_prompts": True, "global_per_prompt": 1,
        "target_count": 1, "field_filters": (FieldFilter("turns", minimum=0),),
    }  # fmt: skip
    told = [inspect(some, mode="sft", **usual), inspect(run, effective_only=True, distinct=True)]
    told += [inspect(some, mode="preference", acceptance=one, **usual) for one in ("any", "correct")]
    told.append(inspect(run, mode="preference", rejected_outcome="failed"))
    with pytest.raises(ExportError) as refused:  # the best of the failed is no better than the worst of all
        inspect(some, mode="preference", acceptance="incorrect", **usual)
    assert "in a pair (chosen failed) 0" in str(refused.value)
    assert {step["stage"] for one in told for step in one["funnel"]} == {
        *STAGES, "turns >= 0",
    } - {
        "in a pair (chosen failed)", "in a pair (rejected passed)", "has text", "with an answer", "answers its prompt",
    }  # fmt: skip
    assert meaning("turns >= 0") == FIELD


def test_a_target_that_cannot_be_met_names_what_is_available(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout(f"t{n}", f"q{n % 2}") for n in range(6)]})
    with pytest.raises(ExportError, match=r"5 trajectories asked for, 4 available, of 2 prompts"):
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


@pytest.mark.parametrize("outcome", [Acceptance.CORRECT, Acceptance.INCORRECT])
def test_a_group_is_not_looked_for_among_all_successes(tmp_path: Path, outcome: Acceptance) -> None:
    passed = [{"prompt": f"p{number}", "reward": 1.0} for number in range(20)]
    with closing(sqlite3.connect(make_index(tmp_path / "never_analysed.sqlite", passed))) as connection:
        sql = f"select 1 from trajectories t where t.prompt_group_id = 7 and {ACCEPTED[outcome]}"
        [(*_, plan)] = connection.execute(f"explain query plan {sql}")
    assert "trajectories_group " in plan


def test_a_run_that_is_removed_meanwhile_ends_an_export_with_a_sentence(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a")]})

    with Selection(open_runs([spec(database)]), ExportPreferences()) as selection:
        selection.select()
        with closing(sqlite3.connect(database)) as connection, connection:
            for table in ("trajectories", "prompt_groups", "step_values", "steps", "shards", "runs"):
                connection.execute(f"delete from {table}")
        with pytest.raises(ExportError, match="The run run is not in the index any more"):
            summary(selection)
        assert nothing_there(selection.scratch.attach(selection.runs[0]), 1, schema="source") == (
            "The run is not in the index any more."
        )
