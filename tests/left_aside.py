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


KINDS: dict[str, Callable[[Path], list[str]]] = {
    "metrics, by name": _metrics,
    "inputs, by content": _inputs,
    "validation, by content": _validation,
    "token shards": _token_shards,
}
