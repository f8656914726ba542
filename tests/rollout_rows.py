"""Rows that are outputs of rollouts: as verl writes them, and for a mapping of one's own."""

from __future__ import annotations

from typing import Any

from rltracer_sqlite.sources.table import TableSource, mapping_source_from_text

GROUP = "0b0f2b1e-6a36-4f7e-9d56-0d7f0a4a0001"
MINE = """
name = "mine"
[content]
kind = "text"
prompt = "input"
completion = "output"
[columns]
reward = "score"
rollout = "session"
output = "part"
"""


def asked(part: int) -> str:
    """Return the prompt of an output: the context of a later one is another."""
    return "How much is 6 times 7?" if part == 0 else f"Go on from note {part}."


def output(session: int, part: int, score: float = 0.0, text: str = "", step: int = 1, **more: Any) -> dict[str, Any]:
    """Return a row as verl 0.9 writes it."""
    said = {"input": f"user\n{asked(part)}\nassistant\n", "output": text or f"said {session}.{part}"}
    return {**said, "gts": "42", "score": score, "step": step, "uid": f"{GROUP}_{session}_{part}", **more}


ROLLOUTS = [
    output(0, 0, 1.0),
    *(output(1, part, 0.0) for part in range(3)),
    output(2, 0, 1.0),
    output(10, 0, 1.0),
    output(10, 1, 1.0),
]


def mine(*columns: str) -> TableSource:
    """Return what reads rows with the mapping MINE, and with further lines for its columns."""
    return mapping_source_from_text(MINE + "\n".join(columns))
