"""One conversation in the ways in which systems record it, what a row of it comes out as, and plain files of rows.

Everything is written with json and pyarrow alone, so that the readers are judged by something else than themselves.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Message = dict[str, Any]
SYSTEM, QUESTION = "Answer with a number.", "How much is 6 times 7?"
GOOD, BAD = "<think>\nsix sevens\n</think>\n\n42", "It is 41."
CALLS = [{"id": "c1", "type": "function", "function": {"name": "multiply", "arguments": '{"a": 6, "b": 7}'}}]
TOOL = {"type": "function", "function": {"name": "multiply", "description": "", "parameters": {"type": "object"}}}
CONTEXT: list[Message] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
GOOD_ANSWER: Message = {"role": "assistant", "reasoning_content": "six sevens", "content": "42"}
RENDERED = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
STRIPPED = f"system\n{SYSTEM}\nuser\n{QUESTION}\nassistant\n"


def said(text: str) -> list[Message]:
    """Return the conversation of an answer that is recorded as messages."""
    return [*CONTEXT, {"role": "assistant", "content": text}]


@dataclass
class Row:
    """What one trajectory of a written file has to come out as."""

    messages: list[Message]
    reward: float | None = None
    step: int | None = None
    split: str | None = None
    kind: str = "messages"
    more: dict[str, Any] = field(default_factory=dict)  # further attributes of its entry


GOOD_SPLIT, BAD_SPLIT = [*CONTEXT, GOOD_ANSWER], said(BAD)


def write_lines(path: Path, *records: Any) -> None:
    """Write records as JSON lines, as Python's json does, making the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as a Parquet file, making the folder."""
    import pyarrow
    import pyarrow.parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
