"""Runs of a few records, and files that hold none, for tests of what is found in folders."""

from __future__ import annotations

import json
from pathlib import Path

from tests.layouts import append, message, trace

GOOD = trace(
    [message("user", "6 * 7?"), message("assistant", "42")], id="good", rewards={"r": 1.0}, metrics={"exact": 1.0}
)
TRACES = "step_{}/train/all/traces.jsonl"


def make_run(folder: Path, *steps: int) -> Path:
    for step in steps or (1,):
        append(folder / "rollouts" / TRACES.format(step), GOOD)
    return folder


def touch(root: Path, *paths: str) -> None:
    """Make files that hold nothing of use."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"not a record")


def write_step(run: Path, step: int, *texts: str) -> Path:
    file = run / "rollouts" / TRACES.format(step)
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(trace([message("user", text)], id=f"{step}-{text}")) + "\n" for text in texts]
    file.write_text("".join(lines))
    return file
