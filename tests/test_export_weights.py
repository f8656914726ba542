"""Draws that tool calls weigh: each sentence of their description as a test of its name, and the shares that follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export.runs import open_runs
from tests.export_runs import chosen, chosen_of, export, indexed, rollout, spec


def pairs(count: int) -> list[dict[str, Any]]:
    """Return two rollouts of each of many prompts, one with one tool call and one with four."""
    return [rollout(f"{calls}-{n}", f"q{n}", calls=calls) for n in range(count) for calls in (1, 4)]


@pytest.fixture(scope="module")
def many_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed(tmp_path_factory.mktemp("pairs"), {1: pairs(400)})


@pytest.fixture(scope="module")
def one_pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    records = [rollout("1", "a", calls=1), rollout("4", "b", calls=4)]
    return indexed(tmp_path_factory.mktemp("pair"), {1: records})


def share_of_four(found: list[str]) -> float:
    """Return the share of rollouts with four tool calls."""
    return sum(uid.startswith("4") for uid in found) / len(found)


def test_tool_call_sampling_power_softly_reduces_the_prominence_of_few_calls(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: pairs(50)})
    found = chosen(spec(database), tool_call_sampling_power=0.5, per_prompt=1)
    assert 0.5 < share_of_four(found) < 1


@pytest.mark.parametrize(("power", "share"), [(0.0, 1 / 2), (0.5, 2 / 3), (1.0, 4 / 5), (2.0, 16 / 17)])
def test_the_weight_is_calls_to_the_power_within_prompt_groups(many_pairs: Path, power: float, share: float) -> None:
    found = chosen(spec(many_pairs), tool_call_sampling_power=power, per_prompt=1)
    # Three standard deviations of a share of 400 draws are 0.075 at most.
    assert share_of_four(found) == pytest.approx(share, abs=0.08)


@pytest.mark.parametrize(("power", "share"), [(0.0, 1 / 2), (0.5, 2 / 3), (1.0, 4 / 5), (2.0, 16 / 17)])
def test_the_weight_is_calls_to_the_power_for_the_global_target(one_pair: Path, power: float, share: float) -> None:
    opened = open_runs([spec(one_pair)])
    found = [
        uid
        for seed in range(100)
        for uid in chosen_of(opened, tool_call_sampling_power=power, target_count=1, seed=seed)
    ]
    assert share_of_four(found) == pytest.approx(share, abs=0.12)


def test_power_0_preserves_uniform_selection(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: pairs(30)})
    assert chosen(spec(database), tool_call_sampling_power=0, per_prompt=1) == chosen(spec(database), per_prompt=1)


def test_selection_is_deterministic_and_summaries_have_both_histograms(tmp_path: Path) -> None:
    records = [rollout(f"t{n}", f"q{n % 3}", calls=n % 4) for n in range(24)]
    database = indexed(tmp_path, {1: records})
    wanted = {"tool_call_sampling_power": 2.0, "per_prompt": 2, "target_count": 5}
    first = export(spec(database), tmp_path / "a.jsonl", **wanted)
    assert first == export(spec(database), tmp_path / "b.jsonl", **wanted)
    told = json.loads((tmp_path / "a.jsonl.summary.json").read_text())
    assert told["available_tool_call_distribution"]["counts"] == {"0": 6, "1": 6, "2": 6, "3": 6}
    assert sum(told["selected_tool_call_distribution"]["counts"].values()) == 5
    assert told["selected_tool_call_distribution"]["mean"] > told["available_tool_call_distribution"]["mean"] == 1.5
