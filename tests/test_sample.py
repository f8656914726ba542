"""The sample run as a whole: which files it has, that they are the same every time, and what the training tells."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sample import write_sample
from tests.sample_run import episodes, reward, traces

EDGE = (
    Path(__file__).parents[2]
    / "shared/corpora/prime-rl/edge/episodes-pypi-0.4.0/rollouts/step_1/train/all/traces.jsonl"
)


@pytest.fixture(scope="module")
def run(demo: Path) -> Path:
    return demo / "run"


def outcomes(run: Path, *where: Any) -> dict[str, list[float]]:
    labels = defaultdict(list)
    for trace in traces(run, *where):
        if (label := trace["metrics"].get("correct_final_label")) is not None:
            labels[trace["task"]["key"]].append(label)
    return labels


def pass_rate(run: Path, step: int) -> float:
    labels = [label for prompt in outcomes(run, "train", "all", step).values() for label in prompt]
    return sum(labels) / len(labels)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_run_has_the_same_bytes(run: Path, tmp_path: Path) -> None:
    write_sample(tmp_path)
    write_sample(tmp_path)
    assert contents(tmp_path) == contents(run)


def test_a_file_that_is_the_same_already_is_not_written_again(tmp_path: Path) -> None:
    write_sample(tmp_path)
    for path in (files := [path for path in tmp_path.rglob("*") if path.is_file()]):
        os.utime(path, (1, 1))
    changed = tmp_path / "metrics.jsonl"
    content = changed.read_bytes()
    changed.write_bytes(content[:-1])
    write_sample(tmp_path)
    assert changed.read_bytes() == content
    assert {path for path in files if path.stat().st_mtime != 1} == {changed}


def test_files_are_those_of_a_prime_rl_run(run: Path) -> None:
    steps = {
        f"rollouts/step_{step}/train/{subset}/traces.jsonl" for step in range(1, 9) for subset in ("all", "effective")
    }
    evals = {f"rollouts/step_{step}/eval/{subset}/traces.jsonl" for step in (4, 8) for subset in ("all", "effective")}
    trainer = {"batches/step_8/rank_0.bin", "monitors/file/traces/annotations/trainer/00000.jsonl"}
    others = {"metrics.jsonl", "configs/resolved/orchestrator.json", "tokenizer/tokenizer.json"}
    assert set(contents(run)) == steps | evals | trainer | others


def test_the_run_is_small(run: Path) -> None:
    assert sum(map(len, contents(run).values())) < 4_000_000
    assert 250 <= len(traces(run, "*")) <= 400


def test_lines_are_compact_json_and_only_one_step_holds_token_arrays(run: Path) -> None:
    for path in run.glob("rollouts/*/*/*/traces.jsonl"):
        text = path.read_bytes()
        assert text.endswith(b"\n")
        assert (b"token_ids" in text) == ("step_8/train" in path.as_posix())
        first = text.split(b"\n")[0]
        assert json.dumps(json.loads(first), ensure_ascii=False, separators=(",", ":")).encode() == first


@pytest.mark.skipif(not EDGE.exists(), reason="the corpora are not beside the repository")
def test_keys_stand_in_the_order_of_the_writer(run: Path) -> None:
    with EDGE.open("rb") as lines:
        recorded = [json.loads(line) for line in lines]
    pairs = [(recorded[0], episodes(run)[0]), (recorded[0]["traces"][0], traces(run)[0])]
    pairs += [(recorded[1]["traces"][0]["nodes"][0], traces(run)[0]["nodes"][0])]
    for theirs, ours in pairs:
        assert [key for key in ours if key in theirs] == [key for key in theirs if key in ours]
        assert set(theirs) - set(ours) <= {"root_reply", "token_ids", "mask", "is_content", "logprobs"}


def test_ids_are_unique_and_groups_share_one_task(run: Path) -> None:
    ids = [record["id"] for record in (*episodes(run, "*"), *traces(run, "*"))]
    assert len(ids) == len(set(ids))
    tasks = defaultdict(set)
    for episode in episodes(run, "*"):
        tasks[episode["group"]["id"]].add((episode["task"]["hash"], episode["run"]["work"]["step"]))
    assert all(len(found) == 1 for found in tasks.values())


def test_the_policy_learns(run: Path) -> None:
    rates = [pass_rate(run, step) for step in range(1, 9)]
    assert 0.1 <= rates[0] <= 0.3
    assert 0.75 <= rates[-1] <= 0.9
    assert all(later > earlier for earlier, later in zip(rates, rates[2:], strict=False))


def test_some_prompts_never_pass_some_always_and_some_flip(run: Path) -> None:
    rates = {name: sum(labels) / len(labels) for name, labels in outcomes(run).items()}
    assert 10 <= len(rates) <= 12
    assert sum(rate == 0 for rate in rates.values()) >= 2
    assert sum(rate == 1 for rate in rates.values()) >= 1
    first, last = outcomes(run, "train", "all", 1), outcomes(run, "train", "all", 8)
    assert [name for name in first.keys() & last.keys() if not any(first[name]) and all(last[name])]


def test_prompts_recur_and_have_four_to_eight_rollouts(run: Path) -> None:
    groups, steps = defaultdict(int), defaultdict(set)
    for episode in episodes(run):
        groups[episode["group"]["id"]] += 1
        steps[episode["task"]["key"]].add(episode["run"]["work"]["step"])
    assert all(4 <= size <= 8 for size in groups.values())
    assert all(len(found) >= 3 for found in steps.values())


def test_advantages_are_the_rewards_minus_the_mean_of_the_group(run: Path) -> None:
    groups = defaultdict(list)
    for episode in episodes(run, "train", "effective"):
        groups[episode["group"]["id"]] += episode["traces"]
    assert len(groups) > 20
    for members in groups.values():
        mean = sum(map(reward, members)) / len(members)
        assert [trace["info"]["advantage"] for trace in members] == pytest.approx(
            [reward(t) - mean for t in members], abs=1e-5
        )
        assert sum(trace["info"]["advantage"] for trace in members) == pytest.approx(0, abs=1e-4)


def test_effective_traces_are_those_of_all_that_could_be_trained(run: Path) -> None:
    everything = {trace["id"]: trace for trace in traces(run)}
    trained = traces(run, "train", "effective")
    assert all(trace["ok"] and trace["agent"]["trainable"] for trace in trained)
    assert not any("advantage" in trace["info"] for trace in everything.values())
    for trace in trained:
        trace["info"] = {key: value for key, value in trace["info"].items() if key != "advantage"}
        for node in trace["nodes"]:
            node.pop("advantages", None)
        assert trace == everything[trace["id"]]


def test_one_group_is_trained_on_a_step_later(run: Path) -> None:
    late = [
        step
        for step in range(1, 9)
        for e in episodes(run, "train", "effective", step)
        if e["run"]["work"]["step"] < step
    ]
    assert late == [6] * len(late)
    assert late


def test_metrics_have_a_row_per_step_and_evaluation(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_bytes().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 4, 5, 6, 7, 8, 8]
    scored = [trace for trace in traces(run, "train", "all", 1) if trace["rewards"]]
    mean = sum(map(reward, scored)) / len(scored)
    assert rows[0]["train/agg/all/agent/reward/mean"] == pytest.approx(mean, abs=1e-6)
