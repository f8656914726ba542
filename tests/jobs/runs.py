"""Runs that indexing with several processes has to read as one process does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.layouts import LAYOUTS, append, append_torn, message, seal, trace
from tests.table_samples import SAMPLES
from tests.token_layouts import export_line, micro_batch, question, write_bin

STREAM = "monitors/file/traces/stream"
ONE = "rollouts/step_1/train/all/traces.jsonl"


def records(count: int, name: str = "t") -> list[dict[str, Any]]:
    said = [message("user", "why? " * 40), message("assistant", "so")]
    return [trace(said, id=f"{name}{number}", rewards={"r": number % 2}) for number in range(count)]


def odd_lines(root: Path) -> None:
    """A big shard in which much is wrong, copies of it, later facts about it, and others that are sealed."""
    append(root / ONE, *records(40))
    with (root / ONE).open("ab") as file:
        file.write(b'\n{"other": 1}\n{"other": 2}\r\n   \nno JSON\n' * 30)
    append(root / ONE, *records(3, "again"), *records(20), trace([message("user", "x" * 20_000)], id="long"))
    append_torn(root / ONE, records(1)[0])
    append(root / ONE.replace("all", "effective"), *records(30))
    append(root / ONE.replace("step_1", "step_2"), *records(50, "second"), *records(5))
    (root / "rollouts" / "notes.jsonl").write_bytes(b'{"a": 1}\n' * 300)


def sealed_chunks(root: Path) -> None:
    for number in range(3):
        append(root / STREAM / f"{number:05}.jsonl", *records(30, f"c{number}-"))
    seal(root / STREAM / "00000.jsonl", frame_bytes=1000)
    facts = [{"version": 1, "trace_id": f"c1-{number}", "info": {"advantage": 0.5}} for number in range(20)]
    append(root / "monitors/file/traces/annotations/orch/00000.jsonl", *facts)


def token_shards(root: Path) -> None:
    for step in (1, 2):
        samples = [question(f"{step} {number}") for number in range(4)]
        batches = [micro_batch("g20", samples), micro_batch("g20", samples[:1], copy=True)]
        write_bin(root / f"token_exports/step_{step}/rank_0.bin", batches)
        append(root / f"token_exports/step_{step}/rank_1.jsonl", *map(export_line, samples))


def rollouts_of_outputs(root: Path) -> None:
    """Write rollouts of one output to five, across whose lines a file is cut."""
    said = {"input": "user\nWhy?\nassistant\n", "gts": "", "score": 1.0, "step": 1}
    made = [
        {**said, "output": "so " * 40, "uid": f"p{number // 4}_{number % 4}_{part}"}
        for number in range(40)
        for part in range(1 + number % 5)
    ]
    append(root / "rollout_data/1.jsonl", *made)


RUNS: dict[str, Callable[[Path], object]] = {
    "outputs": rollouts_of_outputs,
    "odd lines": odd_lines,
    "sealed chunks": sealed_chunks,
    "token shards": token_shards,
    **{name: LAYOUTS[name] for name in ("j2", "j3", "v1c-0.4.0")},
    **{name: SAMPLES[name][1] for name in ("verl", "skyrl", "chat")},
}
