"""Runs with files that are left aside for a known reason, one of each kind, and the reasons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.layouts import append
from tests.table_conversations import nemo_gym
from tests.table_samples import SAMPLES
from tests.token_layouts import micro_batch, question, write_bin
from tests.watching import at_step, record

REASONS = {
    "metrics, by name": "SkyRL's metrics over whole evaluations, not samples",
    "inputs, by content": "NeMo-Gym's inputs, not rollouts",
    "validation, by content": "results of validating an environment, not rollouts",
    "names of no system": (
        "named as no file of prime-rl; to read one, index it by itself: rltracer-index another.sqlite FILE (with "
        "--mapping my.toml for a format of your own)"
    ),
    "beside a table": (
        "named as no file of verl; to read one, index it by itself: rltracer-index another.sqlite FILE (with "
        "--mapping my.toml for a format of your own)"
    ),
    "another system's": "Inspect AI logs, which this version does not read yet",
    "packed otherwise": "packed as nothing here is read; unpack it, or pack it as .zst",
    "another kind": "a kind of file that is not read; write it as JSON lines or as Parquet",
    "token shards": "packed token ids of rollouts that are read from their traces; --layout tokens reads these instead",
}


def _metrics(run: Path) -> list[str]:
    SAMPLES["skyrl"][1](run)
    for file in run.rglob("aggregated_results.jsonl"):
        file.unlink()
    files = [f"dumped_evals/{name}/aggregated_results.jsonl" for name in ("eval_only", "global_step_8_evals")]
    for name in files:
        append(run / name, {"eval/all/avg_score": 0.5})
    return files


def _inputs(run: Path) -> list[str]:
    run.mkdir()
    nemo_gym(run)
    return ["x_rollouts_materialized_inputs.jsonl"]


def _validation(run: Path) -> list[str]:
    append(run / at_step(1), record("t"))
    append(run / "validated.jsonl", {"valid": True})
    return ["validated.jsonl"]


def _token_shards(run: Path) -> list[str]:
    append(run / at_step(1), record("t"))
    files = [f"rollouts/step_{step}/rank_0.bin" for step in (1, 2)]
    for name in files:
        write_bin(run / name, [micro_batch("g20", [question()])])
    return files


def _beside(sample: str, *names: str) -> Callable[[Path], list[str]]:
    """Return what writes a system's run and beside its files others of these names, which nobody can open."""

    def write(run: Path) -> list[str]:
        SAMPLES[sample][1](run) if sample else append(run / at_step(1), record("t"))
        for name in names:
            (run / name).parent.mkdir(parents=True, exist_ok=True)
            (run / name).symlink_to("nothing")
        return sorted(names)

    return write


KINDS: dict[str, Callable[[Path], list[str]]] = {
    "metrics, by name": _metrics,
    "inputs, by content": _inputs,
    "validation, by content": _validation,
    "token shards": _token_shards,
    "names of no system": _beside("", "data/train.parquet", "samples.json", "traces.db"),
    "beside a table": _beside("verl", "more.jsonl", "rollout_data/1b.jsonl"),
    "another system's": _beside("trl-text", "logs/now.eval"),
    "packed otherwise": _beside("verl", "rollout_data/2.jsonl.gz"),
    "another kind": _beside("trl-text", "completions.csv"),
}
