"""A folder as AReaL writes it: the rows of one prompt, each sampled by one version of the policy or by several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path


def write_areal(run: Path, spans: Sequence[tuple[int, int]]) -> Path:
    """Write a row for each (first, last) version of the policy, and return the run."""
    rows = [
        {
            "task_id": 12,
            "sample_idx": place,
            "seqlen": 9,
            "prompt_len": 5,
            "head_version": first,
            "tail_version": last,
            "version_rle": [[version, 2] for version in sorted({first, last})],
            "reward": 1.0,
            "prompt": "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n",
            "completion": "4<|im_end|>",
            "original_reward": 10.0,
        }
        for place, (first, last) in enumerate(spans)
    ]
    file = run / "logs/root/sums/trial0/rollout/1/12.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return run
