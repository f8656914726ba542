"""Traces or Episodes as JSONL under rollouts/step_N/{train,eval}/{all,effective}/traces.jsonl."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
from numpy.random import default_rng

from .rollouts import RolloutMaker
from .traces import TraceWriter, episode

DUMP = orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY


def write_jsonl(maker: RolloutMaker, out: Path) -> str:
    """Write the run and return a line on its size."""
    options, writer = maker.options, TraceWriter(maker, maker.options)
    count = size = 0
    for step in range(1, options.steps + 1):
        for split, prompts, rollouts in _cohorts(maker, step):
            folder = out / "rollouts" / f"step_{step}" / split
            (folder / "all").mkdir(parents=True, exist_ok=True)
            effective = []
            with (folder / "all" / "traces.jsonl").open("wb") as file:
                for record, ships in _records(writer, step, split, prompts, rollouts):
                    file.write(record)
                    count, size = count + 1, size + len(record)
                    if ships:
                        effective.append(record)
            if effective:
                (folder / "effective").mkdir(exist_ok=True)
                (folder / "effective" / "traces.jsonl").write_bytes(b"".join(effective))
    return f"{out}: {count:,} records, {size / 1e6:.1f} MB under all/, {maker.unique} distinct prompts"


def _cohorts(maker: RolloutMaker, step: int) -> Iterator[tuple[str, list[int], int]]:
    """Yield (split, prompts, rollouts of each prompt)."""
    options = maker.options
    yield "train", maker.step_prompts(step).tolist(), options.rollouts
    if options.eval_every and step % options.eval_every == 0:
        yield "eval", list(range(options.prompts)), 1


def _records(
    writer: TraceWriter, step: int, split: str, prompts: list[int], rollouts: int
) -> Iterator[tuple[bytes, bool]]:
    """Yield (line, whether it goes to effective/ too), in the order in which rollouts end."""
    options, maker = writer.options, writer.maker
    jobs = [(prompt, number) for prompt in prompts for number in range(rollouts)]
    # The rollouts of one prompt do not end together, so its group is scattered over the file.
    for place in default_rng([options.seed, 13, step, split == "eval"]).permutation(len(jobs)):
        prompt, number = jobs[place]
        rollout = maker.rollout(step, prompt, number, split)
        record = writer.trace(rollout)
        if options.format == "episodes":
            others = [maker.rollout(step, prompt, number, split, agent) for agent in range(1, options.agents)]
            record = episode([record, *map(writer.trace, others)], step, split, f"g{step}-{prompt}")
        line = orjson.dumps(record, option=DUMP)
        yield line, bool(options.effective and not rollout.failed and rollout.rng.random() < options.effective)
