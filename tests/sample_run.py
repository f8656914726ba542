"""The sample run, read back by plain `json.loads`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def episodes(run: Path, split: str = "train", subset: str = "all", step: int | str = "*") -> list[Record]:
    """Return the episodes of one subset of a split, at one step or at all of them, in the order of the files."""
    paths = sorted(run.glob(f"rollouts/step_{step}/{split}/{subset}/traces.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_bytes().split(b"\n")[:-1]]


def traces(run: Path, *where: Any) -> list[Record]:
    """Return the traces of these episodes."""
    return [trace for episode in episodes(run, *where) for trace in episode["traces"]]


def final(trace: Record) -> str:
    """Return the text of the last message, "" for none."""
    return str(trace["nodes"][-1]["message"].get("content", ""))


def reward(trace: Record) -> float:
    """Return the weighted sum of the scores of a trace."""
    return float(sum(named["score"] * named["weight"] for named in trace["rewards"].values()))
