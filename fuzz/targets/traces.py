"""Whole JSONL files of prime-rl and verifiers: nothing lost, the same by pieces, and loaded as counted."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from rltracer_sqlite.sources import lines
from rltracer_sqlite.sources.base import Entry, LocatorError, Position, Problem, Shard, SourceError
from rltracer_sqlite.sources.prime_rl import PrimeRLSource, record_decoding, scan
from rltracer_sqlite.tool_names import names_json
from rltracer_sqlite.trajectory import Trajectory
from tests.layouts import LAYOUTS, line, message, trace

from ..invariants import check_nothing_lost, check_parts, check_resumed, entries, patched, place_of, remarked, scanned
from ..scratch import scratch
from ..target import Target

PLACES: list[tuple[str, int | None, str | None]] = [
    ("traces", 1, "train"), ("stream", None, None), ("file", None, None), ("evals", 3, "eval"), ("rollouts", 0, "eval"),
]  # fmt: skip
WORDS = (
    "id", "nodes", "traces", "message", "role", "content", "assistant", "user", "tool", "system", "parent",
    "sampled", "tool_calls",
    "rewards", "reward", "score", "weight", "metrics", "info", "task", "data", "idx", "prompt", "completion",
    "answer", "run",
    "work", "step", "policy", "start", "errors", "error", "type", "ok", "is_completed", "is_truncated", "timing",
    "usage", "calls",
    "token_ids", "mask", "logprobs", "advantages", "trace_id", "branches", "example_id", "group_id", "effective",
    "ship", "arrival",
    "kind", "env", "env_name", "name", "agent", "function", "arguments", "reasoning_content", "text", "image_url",
    "total_ms",
    "generation", "model", "end", "start_time", "stop_condition", "finish_reason", "completion_tokens", "prompt_tokens",
)  # fmt: skip
SOURCE = PrimeRLSource()
lines.CHUNK_BYTES = 1 << 17  # no input is longer, and filling a large buffer is all that a small file costs


def shard_of(data: bytes) -> Shard:
    layout, step, split = PLACES[data[0] % len(PLACES)] if data else PLACES[0]
    return Shard("a.jsonl", "a.jsonl", layout, step, split, "orch" if data[:1] > b"\x80" else None)


def check_traces(data: bytes) -> None:
    """Every byte is told; pieces, cuts and restarts change nothing; each entry loads as what was counted."""
    root, shard, content = scratch("traces"), shard_of(data), data[1:]
    (root / "a.jsonl").write_bytes(content)
    found = scanned(SOURCE, root, shard)
    with patched(record_decoding, find_arrays=lambda buffer, start, end: []):
        uncut = scanned(SOURCE, root, shard)
    if not any(isinstance(one, Problem) and one.reason.startswith("not readable") for one in uncut or ()):
        # A damaged token array makes a whole line unreadable, or is told of; cut out, it is not missed.
        assert _rows(uncut) == _rows(found), "cutting changed what was found"
        assert _troubles(uncut) >= _troubles(found), "cutting made a problem"
    with patched(lines, CHUNK_BYTES=1 + len(content) % 61), patched(scan, COMMIT_RECORDS=2):
        pieces = scanned(SOURCE, root, shard)
        if found is None:
            assert pieces is None
            return
        assert pieces is not None
        whole = [one for one in found if not isinstance(one, Position)]
        assert [one for one in pieces if not isinstance(one, Position)] == whole, "small pieces changed what was found"
        assert pieces[-1] == found[-1]
        check_resumed(SOURCE, root, shard, pieces)
    check_parts(SOURCE, root, shard, found, len(content) * (data[0] if data else 0) // 255)
    check_nothing_lost(content, found)
    in_part = remarked(found)
    for entry in entries(found):
        check_load(root, shard, entry, content, exact=entry.byte_offset not in in_part)


def _rows(found: Any) -> Any:
    return found and [one for one in found if isinstance(one, (Entry, Position))]


def _troubles(found: Any) -> set[Any]:
    # Without the reason, which names a character of the record: another one where arrays were cut out.
    return {(one.line, one.byte_offset) for one in found or () if isinstance(one, Problem)}


def check_load(root: Path, shard: Shard, entry: Entry, content: bytes, exact: bool) -> None:
    """What is shown of a trajectory is what the index counted."""
    try:
        shown = SOURCE.load(root, [place_of(entry, shard)])
    except LocatorError as error:
        assert "nested too deeply" in str(error) or "branches of together" in str(error), error
        return
    assert shown.raw == content[entry.byte_offset : entry.byte_offset + entry.byte_length]
    assert shown.metadata["uid"] == entry.uid
    try:
        assert len(shown.branch_tokens) in (0, len(shown.branches))
    except SourceError as error:
        assert str(error)
    if exact:
        _check_counts(shown, entry)


def _check_counts(shown: Trajectory, entry: Entry) -> None:
    metadata, completion = shown.metadata, shown.metadata["completion"]
    told = {
        "reward": metadata["reward"], "tool_calls": metadata["tool_calls"], "turns": completion["turns"],
        "tools": names_json(tuple(metadata["tools"])),
        "prompt_tokens": completion["prompt_tokens"], "completion_tokens": completion["completion_tokens"],
        "branches": len(shown.branches),
    }  # fmt: skip
    counted = {name: getattr(entry, name) for name in told}
    if entry.turns == 0 and entry.reward is None:
        told["reward"] = None  # an episode that failed before any agent ran has no reward
    assert told == counted, (told, counted)


def check_growth(data: bytes) -> None:
    """A file that was read while it grew gives what it gives when it is read at once."""
    root, content = scratch("growth"), data[1:]
    shard = Shard("a.jsonl", "a.jsonl", "traces", 1, "train")
    cut = len(content) * (data[0] if data else 0) // 255
    (root / "a.jsonl").write_bytes(content[:cut])
    first = scanned(SOURCE, root, shard)
    (root / "a.jsonl").write_bytes(content)
    whole = scanned(SOURCE, root, shard)
    if first is None or whole is None:
        return  # a Git LFS pointer
    reached = first[-1]
    assert isinstance(reached, Position)
    later = scanned(SOURCE, root, shard, reached)
    assert later is not None
    assert [*entries(first), *entries(later)] == entries(whole)
    assert later[-1] == whole[-1]


@cache
def trace_seeds() -> list[bytes]:
    """Return the small runs of the tests in every layout, a few records each, and some odd ones."""
    seeds = []
    with tempfile.TemporaryDirectory() as name:
        for number, (layout, write) in enumerate(LAYOUTS.items()):
            folder = Path(name) / layout
            folder.mkdir()
            write(folder)
            for file in sorted(folder.rglob("*.jsonl")):
                records_of = file.read_bytes().split(b"\n")
                seeds.append(bytes([number]) + b"\n".join(records_of[:2])[:6000] + b"\n")
                seeds.append(bytes([number + 1]) + b"\n".join(records_of[-3:])[-6000:])
    said = [message("user", "6*7?"), message("assistant", "42")]
    small = line(trace(said, id="a", rewards={"r": 1.0}, info={}, metrics={"m": 1.0}))
    seeds += [bytes([number]) + small * 3 for number in range(len(PLACES))]
    return list(dict.fromkeys(seeds))


TARGETS = {
    "traces": Target(
        "traces", "JSONL of prime-rl and verifiers, whole files", check_traces, trace_seeds, "json", WORDS
    ),
    "growth": Target(
        "growth", "a file read while it grows equals one read at once", check_growth, trace_seeds, "json", WORDS
    ),
}
