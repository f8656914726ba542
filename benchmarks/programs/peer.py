"""What a user of rltracer 0.1.0 writes, one function for each operation. Runs in that package's environment."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path

from rltracer import PassAnalysisConfig, PrimeRLAdapter, RLTracer, calculate_prompt_pass_metrics


def index(database: str, run: str) -> dict[str, object]:
    """Index every step, as listing their prompts does."""
    tracer = _open(database, run)
    return {"trajectories": sum(prompt.rollout_count for step in tracer.steps() for prompt in step.prompts())}


def index_tokens(database: str, run: str, tokenizer: str) -> dict[str, object]:
    """Index every step of a run of token ids."""
    tracer = RLTracer(PrimeRLAdapter(Path(run) / "rollouts", tokenizer, database))
    return {"trajectories": sum(prompt.rollout_count for step in tracer.steps() for prompt in step.prompts())}


def refresh(database: str, run: str) -> dict[str, object]:
    """Bring the index up to date."""
    tracer = _open(database, run)
    began = time.perf_counter()
    for step in tracer.steps():
        tracer.adapter.ensure_step_indexed(step.number)
    seconds = time.perf_counter() - began
    return {
        "seconds": [seconds],
        "answer": tracer.adapter.db.execute("select count(*) from trajectories").fetchone()[0],
    }


def load(database: str, run: str, identity: str, times: str) -> dict[str, object]:
    """Load one trajectory."""
    adapter = _open(database, run).adapter
    seconds = []
    for _ in range(int(times)):
        began = time.perf_counter()
        trajectory = adapter.load_trajectory(int(identity))
        seconds.append(time.perf_counter() - began)
    texts = [[message["role"], message["content"]] for message in trajectory.messages]
    return {"seconds": seconds, "answer": hashlib.sha256(json.dumps(texts).encode()).hexdigest()}


def pass_rates(database: str, run: str, step: str, times: str) -> dict[str, object]:
    """Calculate the pass rate of each prompt of a step."""
    tracer = _open(database, run)
    config = PassAnalysisConfig(bin_size=1, step_start=int(step), step_end=int(step))
    seconds = []
    for _ in range(int(times)):
        began = time.perf_counter()
        metrics, _ = calculate_prompt_pass_metrics(tracer, config)
        seconds.append(time.perf_counter() - began)
    # Previews are cut at different lengths, so only their beginnings are compared.
    rows = sorted([row.prompt_preview[:100], row.rollout_count, row.success_count] for row in metrics)
    return {"seconds": seconds, "answer": rows}


def _open(database: str, run: str) -> RLTracer:
    return RLTracer(PrimeRLAdapter(Path(run) / "rollouts", "unused", database))


if __name__ == "__main__":
    operations = {
        "index": index,
        "index_tokens": index_tokens,
        "refresh": refresh,
        "load": load,
        "pass_rates": pass_rates,
    }
    print(json.dumps(operations[sys.argv[1]](*sys.argv[2:])))
