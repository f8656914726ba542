"""Pairs for preference training: which trajectories stand together, and when there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import DifficultyFilter, ExportError
from tests.commands import rltracer
from tests.export_runs import export, funnel, indexed, inspect, rollout, spec


def scored(uid: str, reward: float, question: str = "q", **extra: Any) -> dict[str, Any]:
    return rollout(uid, question, passed=reward >= 1, rewards={"reward": {"score": reward, "weight": 1.0}}, **extra)


def pairs(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (chosen, rejected) ids."""
    said = [(row["chosen"][-1]["content"], row["rejected"][-1]["content"]) for row in rows]
    return [(better.split("(")[1][:-1], worse.split("(")[1][:-1]) for better, worse in said]


def test_the_best_stands_with_the_worst(tmp_path: Path) -> None:
    records = [scored(f"r{reward}", reward / 4) for reward in (0, 1, 2, 3, 4)]
    database = indexed(tmp_path, {1: records})
    rows = export(
        spec(database), tmp_path / "o.jsonl", mode="preference", acceptance="any", per_prompt=9, include_provenance=True
    )
    assert sorted(pairs(rows)) == [("r3", "r1"), ("r4", "r0")]
    margins = {row["trace_provenance"]["chosen"]["uid"]: row["trace_provenance"]["reward_margin"] for row in rows}
    assert margins == {"r4": 1.0, "r3": 0.5}
    assert pairs(export(spec(database), tmp_path / "o.jsonl", mode="preference", per_prompt=9)) == [("r4", "r0")]


@pytest.mark.parametrize(("margin", "count"), [(0.0, 2), (0.5, 2), (0.75, 1), (1.0, 1), (1.5, None)])
def test_the_margin_is_the_least_difference_and_no_pair_is_an_error(
    tmp_path: Path, margin: float, count: int | None
) -> None:
    database = indexed(tmp_path, {1: [scored(f"r{reward}", reward / 4) for reward in (0, 1, 2, 3, 4)]})
    wanted = {"mode": "preference", "acceptance": "any", "reward_margin": margin, "per_prompt": None}
    if count is None:
        with pytest.raises(ExportError, match="There is no pair"):
            export(spec(database), tmp_path / "o.jsonl", **wanted)
        assert not (tmp_path / "o.jsonl").exists()
    else:
        assert len(export(spec(database), tmp_path / "o.jsonl", **wanted)) == count


def test_equal_rewards_make_no_pair(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [scored(f"t{n}", 1.0) for n in range(4)]})
    with pytest.raises(ExportError, match="There is no pair"):
        inspect(spec(database), mode="preference", acceptance="any")


def test_pairs_stay_within_their_prompt_and_window(tmp_path: Path) -> None:
    steps = {1: [scored("a1", 1, "a"), scored("b0", 0, "b")], 2: [scored("a0", 0, "a"), scored("b1", 1, "b")]}
    database = indexed(tmp_path, steps)
    rows = export(spec(database), tmp_path / "o.jsonl", mode="preference")
    assert sorted(pairs(rows)) == [("a1", "a0"), ("b1", "b0")]
    with pytest.raises(ExportError, match="There is no pair"):
        inspect(spec(database), mode="preference", window_size=1)


def test_unscored_trajectories_are_in_no_pair(tmp_path: Path) -> None:
    records = [scored("yes", 1), rollout("unscored", "q", passed=None), scored("no", 0)]
    database = indexed(tmp_path, {1: records})
    assert pairs(export(spec(database), tmp_path / "o.jsonl", mode="preference", per_prompt=None)) == [("yes", "no")]


def test_the_funnel_counts_trajectories_and_adds_up(tmp_path: Path) -> None:
    records = [scored(f"{q}{n}", n % 2, q) for q in "abc" for n in range(6)]
    told = inspect(spec(indexed(tmp_path, {1: records})), mode="preference", target_count=4)
    stages = funnel(told)
    assert (stages["reward known"], stages["in a pair (chosen passed)"], stages["target"]) == (18, 12, 8)
    assert (told["unit"], told["selected_count"]) == ("pairs", 4)
    assert sum(told["selected_tool_call_distribution"]["counts"].values()) == 8


def test_pairs_whose_prompts_differ_are_rejected_and_replaced(tmp_path: Path) -> None:
    records = [scored("yes", 1), scored("other", 0), scored("no", 0.5)]
    records[1]["nodes"][1]["message"]["content"] = " q"  # the same prompt by its key, not by its text
    database = indexed(tmp_path, {1: records})
    assert pairs(export(spec(database), tmp_path / "o.jsonl", mode="preference")) == [("yes", "no")]
    told = json.loads((tmp_path / "o.jsonl.summary.json").read_text())
    assert told["rejected"] == {"the prompts of the pair differ": 1}


def test_filters_hold_for_both_sides(tmp_path: Path) -> None:
    records = [scored("yes", 1), scored("failed", 0, ok=False, stop_condition="error"), scored("no", 0.5)]
    database = indexed(tmp_path, {1: records})
    assert pairs(export(spec(database), tmp_path / "o.jsonl", mode="preference")) == [("yes", "no")]


def test_difficulty_and_tools(tmp_path: Path) -> None:
    records = [scored("yes", 1, calls=1), scored("no", 0), scored("easy", 1, "easy"), scored("easier", 1, "easy")]
    database = indexed(tmp_path, {1: records})
    [row] = export(
        spec(database), tmp_path / "o.jsonl", mode="preference", difficulty=DifficultyFilter(max_pass_rate=0.5)
    )
    assert json.loads(row["tools"])[0]["function"]["name"] == "bash"
    assert [said["role"] for said in row["chosen"]] == ["assistant", "tool", "assistant"]


def test_answers_that_are_all_the_same_are_named_as_the_reason(tmp_path: Path) -> None:
    records = [scored(f"t{n}", float(n % 2)) for n in range(4)]
    for record in records:
        record["nodes"][-1]["message"]["content"] = "the same"
    database = indexed(tmp_path, {1: records})
    with pytest.raises(ExportError, match=r"left out when it was read: both answers are the same \(\d\)\. Left after"):
        export(spec(database), tmp_path / "o.jsonl", mode="preference")
    with pytest.raises(
        ExportError,
        match=r"differ by 2 or more, the better of them passed\. Left after each step: available 4, reward known 4",
    ):
        inspect(spec(database), mode="preference", reward_margin=2.0)


def of_rule(uid: str, reward: float, label: float | None) -> dict[str, Any]:
    """Return a rollout whose outcome by the default rule is not what its reward suggests."""
    return scored(uid, reward, metrics={} if label is None else {"correct_final_label": label})


ODD = [of_rule("a", 1.1, 1), of_rule("b", 1, 0), of_rule("c", 0.5, None), of_rule("d", 0.2, 1), of_rule("e", 0, None)]


def test_the_outcomes_of_both_sides_are_told_where_any_is_taken(tmp_path: Path) -> None:
    run = spec(indexed(tmp_path, {1: ODD}))
    wanted: dict[str, Any] = {"mode": "preference", "per_prompt": None}
    assert inspect(run, acceptance="any", **wanted)["row_notes"] == [
        "Of 2 chosen answers 1 failed by the success rule (trajectory 2); acceptance='passed' leaves them out.",
        "Of 2 rejected answers 1 passed by the success rule (trajectory 4) and 1 is unscored (trajectory 5); "
        "rejected_outcome='failed' leaves them out.",
    ]
    unscored = "Of 1 rejected answer 1 is unscored (trajectory 5); rejected_outcome='failed' leaves them out."
    assert inspect(run, **wanted)["row_notes"] == [unscored]
    assert inspect(run, rejected_outcome="passed", **wanted)["row_notes"] == []


@pytest.mark.parametrize(
    ("acceptance", "outcome", "expected", "left"),
    [
        ("any", "any", [("a", "e"), ("b", "d")], {"in a pair": 4}),
        ("any", "failed", [("a", "b")], {"in a pair": 4, "in a pair (rejected failed)": 2}),
        ("any", "passed", [("a", "d")], {"in a pair": 4, "in a pair (rejected passed)": 2}),
        ("passed", "failed", [("a", "b")], {"in a pair (chosen passed)": 2, "in a pair (rejected failed)": 2}),
        ("failed", "passed", [("b", "d")], {"in a pair (chosen failed)": 2, "in a pair (rejected passed)": 2}),
    ],
)
def test_the_rejected_one_has_the_outcome_that_is_asked_of_it(
    tmp_path: Path, acceptance: str, outcome: str, expected: list[tuple[str, str]], left: dict[str, int]
) -> None:
    database = indexed(tmp_path, {1: ODD})
    wanted = {"mode": "preference", "acceptance": acceptance, "rejected_outcome": outcome, "per_prompt": None}
    assert sorted(pairs(export(spec(database), tmp_path / "o.jsonl", **wanted))) == expected
    told = json.loads((tmp_path / "o.jsonl.summary.json").read_text())
    assert {name: count for name, count in funnel(told).items() if name.startswith("in a pair")} == left
    assert sum(step["dropped"] for step in told["funnel"]) == 5 - told["funnel"][-1]["left"]


def test_what_is_asked_of_the_rejected_one_is_named_where_it_leaves_too_few(tmp_path: Path) -> None:
    run = spec(indexed(tmp_path, {1: [*ODD, scored("x", 1, "x"), scored("y", 0, "x")]}))
    with pytest.raises(ExportError, match="the better of them passed, the worse of them failed"):
        inspect(run, mode="preference", rejected_outcome="failed", reward_margin=1.05)
    with pytest.raises(
        ExportError, match=r"pair \(rejected failed\) leaves 4\. There are enough with rejected_outcome='any' \(3\)"
    ):
        inspect(run, mode="preference", acceptance="any", rejected_outcome="failed", target_count=3)


def test_the_command_asks_an_outcome_of_the_rejected_one(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: ODD})
    asked = ["export", database, "--mode", "preference", "--per-prompt", "all", "-o", tmp_path / "o.jsonl"]
    assert "Note: Of 1 rejected answer 1 is unscored (trajectory 5); --rejected failed" in rltracer(*asked).stderr
    told = rltracer(*asked, "--rejected", "failed")
    assert ("in a pair (rejected failed)" in told.stdout, "Note" in told.stderr) == (True, False)
    wrong = rltracer("export", database, "--rejected", "failed", "--dry-run")
    assert (wrong.returncode, "--rejected is of preference pairs" in wrong.stderr) == (2, True)
