"""Scanning one JSONL shard of prime-rl or verifiers: lines in; entries, updates, problems and positions out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import Entry, NotRollouts, Position, Problem, Scanned, Shard, Update
from ..files import open_shard
from ..lines import Line, Tail, complete_lines, decode_leniently
from .entries import trace_entries, update
from .records import Record, copied, kind, read_record
from .v0 import flat_values, v0_entry

COMMIT_RECORDS = 4000
COMMIT_BYTES = 1 << 28
SHORT = 64  # bytes; a longer blank line is told as a problem
LFS_POINTER = b"version https://git-lfs"
# What else these systems write as JSONL: known, and no trajectories.
OTHER_KINDS = {
    "index_row": "an index of the stream, not records",
    "validation": "results of validating an environment, not rollouts",
    "token_export": "token exports without text",
}


@dataclass
class Unknown:
    """Consecutive lines that are no rollout record, told as one problem."""

    line: int
    offset: int
    length: int
    lines: int
    what: str

    def problem(self) -> Problem:
        count = f"{self.lines:,} lines that are" if self.lines > 1 else "a line that is"
        return Problem(self.line, self.offset, self.length, f"{count} no rollout record ({self.what})")


def scan_lines(root: Path, shard: Shard, start: Position) -> Iterator[Scanned]:
    """Yield what a shard holds from `start` on. Raises NotRollouts when its first line shows that it holds none."""
    number, records, last_commit, unknown = start.line, 0, start.offset, None
    with open_shard(root, shard.path) as reader:
        for line in complete_lines(reader, start.offset):
            if isinstance(line, Tail):
                if unknown:
                    yield unknown.problem()
                if line.offset == 0 and line.length:
                    _refuse_pointer(reader.pread(len(LFS_POINTER), 0))
                yield Position(line.offset, number, line.length)
                return
            number += 1
            for found in _line(line, shard, number):
                if isinstance(found, Unknown):
                    unknown = _joined(unknown, found)
                    continue
                if unknown:
                    yield unknown.problem()
                    unknown = None
                yield found
            records += 1
            after = line.offset + line.end - line.start + 1
            if unknown is None and (records >= COMMIT_RECORDS or after - last_commit >= COMMIT_BYTES):
                yield Position(after, number)
                records, last_commit = 0, after


def _line(line: Line, shard: Shard, number: int) -> Iterator[Entry | Update | Problem | Unknown]:
    buffer, start, end, offset = line
    length = end - start
    if length < SHORT and not buffer[start:end].strip():
        return  # a blank line
    try:
        record, remarks = read_record(buffer, start, end)
    except ValueError as error:
        if offset == 0:
            _refuse_pointer(bytes(buffer[start : start + len(LFS_POINTER)]))
        yield Problem(number, offset, length, f"not readable: {error}")
        return
    found = list(_found(record, buffer, line, shard, number))
    if not found:
        what = OTHER_KINDS.get(kind(record) or "") or _keys(copied(buffer, start, end))
        if shard.layout == "file" and number == 1:
            raise NotRollouts(what)
        yield Unknown(number, offset, length, 1, what)
        return
    for remark in remarks:
        yield Problem(number, offset, length, f"read in part: {remark}")
    yield from found


def _found(
    record: Record, buffer: bytearray, line: Line, shard: Shard, number: int
) -> Iterator[Entry | Update | Problem]:
    length, what = line.end - line.start, kind(record)
    if what in ("trace", "episode"):
        yield from trace_entries(record, shard, line.offset, length, number)
    elif what == "v0":
        flat = flat_values(copied(buffer, line.start, line.end)) if record.metrics is None else {}
        yield v0_entry(record, shard, line.offset, length, number, flat)
    elif what == "update":
        yield update(record, line.offset, length, number)


def _joined(before: Unknown | None, now: Unknown) -> Unknown:
    if before is None:
        return now
    length = now.offset + now.length - before.offset
    return Unknown(before.line, before.offset, length, before.lines + 1, before.what)


def _keys(line: bytes) -> str:
    value: Any = decode_leniently(line)[0]
    names = [str(name)[:40] for name in value] if isinstance(value, dict) else []
    return "keys: " + ", ".join(names[:8]) + (" …" if len(names) > 8 else "") if names else "no keys"


def _refuse_pointer(beginning: bytes) -> None:
    if beginning.startswith(LFS_POINTER):
        raise NotRollouts("a Git LFS pointer instead of the file itself; run git lfs pull")
