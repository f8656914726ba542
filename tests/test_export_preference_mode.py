"""Pairs for preference training: which trajectories stand together, and when there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import DifficultyFilter, ExportError
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
