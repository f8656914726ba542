"""A run of ms-swift whose reward is the sum of two functions: a wrong answer in the right format passes reward >= 1."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.indexing import index

ACCURACY, FORMAT = "Accuracy", "Format"
SUM = f"reward >= 1 (the sum of {ACCURACY} and {FORMAT})"
ALONE = f"rewards.{ACCURACY}.score >= 1"


def write_swift(folder: Path, rewards: Mapping[str, Sequence[float | None]], steps: int = 2) -> Path:
    """Write a run with one trajectory per score and step, and return its folder."""
    count = len(next(iter(rewards.values())))
    folder.mkdir(parents=True)
    with (folder / "completions.jsonl").open("w") as file:
        for step in range(1, steps + 1):
            prompt = "<|im_start|>user\n6 * 7?<|im_end|>\n<|im_start|>assistant\n"
            completions = [f"{number}<|im_end|>" for number in range(count)]
            row = {"step": [str(step)] * count, "prompt": [prompt] * count, "completion": completions}
            file.write(json.dumps({**row, **rewards, "advantages": [0.5] * count}) + "\n")
    return folder


def indexed_sum(folder: Path, name: str = "index") -> Path:
    """Return the index of such a run: of four rollouts two pass, of which one has a wrong answer."""
    rewards = {ACCURACY: [1.0, 0.0, 0.0, 0.0], FORMAT: [0.0, 1.0, 0.0, None]}
    index(folder / f"{name}.sqlite", write_swift(folder / "summed", rewards))
    return folder / f"{name}.sqlite"
