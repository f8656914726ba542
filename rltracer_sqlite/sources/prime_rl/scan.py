"""Scanning one JSONL shard of prime-rl or verifiers: lines in; entries, updates, problems and positions out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ..base import Entry, KnownOther, NotRollouts, Position, Problem, Scanned, Shard, Update
from ..files import LFS_POINTER, open_shard, refuse_pointer
from ..lines import Line, Tail, complete_lines, decode_leniently
from ..places import Root
from ..readers import ByteReader
from .entries import trace_entries, update
from .record_decoding import copied, read_leniently, read_record
from .record_types import Record, kind
from .v0 import flat_values, v0_entry

COMMIT_RECORDS = 4000
COMMIT_BYTES = 1 << 26
PROBE_LINES = 100  # of a file in no known layout, before it is put aside
PROBE_BYTES = 16 << 20
SHORT = 64  # bytes; a longer blank line is told as a problem
# What else these systems write as JSONL: known, and no trajectories.
OTHER_KINDS = {
    "index_row": "an index of the stream, not records",
    "validation": "results of validating an environment, not rollouts",
    "token_export": "token exports without text",
}


class Unknown(msgspec.Struct, gc=False):
    """Consecutive lines that are no rollout record, told as one problem."""

    line: int
    offset: int
    length: int
    lines: int
    what: str

    def problem(self) -> Problem:
        count = f"{self.lines:,} lines that are no rollout records (the first: " if self.lines > 1 else ""
        reason = f"{count or 'a line that is no rollout record ('}{self.what})"
        return Problem(self.line, self.offset, self.length, reason)


Found = Entry | Update | Problem | Unknown | Position


def line_findings(root: Root, shard: Shard, start: Position, stop: int | None = None) -> Iterator[Found]:
    """Yield what each line says that begins before `stop`, and the position behind the last of them.

    What is to be said of several lines together `joined_lines` says, so that it does not matter how a shard is cut.
    """
    number = start.line
    with open_shard(root, shard.path) as reader:
        for line in complete_lines(reader, start.offset, stop):
            if isinstance(line, Tail):
                yield from _tail(reader, line, number)
                return
            number += 1
            yield from _line(line, shard, number)


def joined_lines(shard: Shard, start: Position, found: Iterable[Found]) -> Iterator[Scanned]:
    """Yield what a scan does: lines that are no records joined, and a position now and then. Raises NotRollouts."""
    doubtful = shard.layout == "file" and start.offset == 0
    unknown: Unknown | None = None
    strange = ""  # what the first of them is that is of no known kind
    reached = committed = start
    number, after = start.line, start.offset  # of the last line that is a record
    for one in found:
        if isinstance(one, Position):
            if unknown and doubtful:
                raise _no_rollouts(unknown.what, strange)
            reached, doubtful = one, False
            continue
        if one.line != number and unknown is None and _is_enough(committed, number, after):
            committed = Position(after, number)
            yield committed
        if isinstance(one, Unknown):
            unknown = _joined(unknown, one)
            strange = strange or (one.what if one.what not in OTHER_KINDS.values() else "")
            if doubtful and (unknown.lines >= PROBE_LINES or unknown.offset + unknown.length >= PROBE_BYTES):
                raise _no_rollouts(unknown.what, strange)
            continue
        if unknown:
            yield unknown.problem()
        unknown, doubtful = None, False
        number, after = one.line or number, one.byte_offset + one.byte_length + 1
        yield one
    if unknown:
        yield unknown.problem()
    yield reached


def _is_enough(committed: Position, number: int, after: int) -> bool:
    return number - committed.line >= COMMIT_RECORDS or after - committed.offset >= COMMIT_BYTES


def _tail(reader: ByteReader, tail: Tail, number: int) -> Iterator[Problem | Position]:
    if tail.offset == 0 and tail.length:
        refuse_pointer(reader.pread(len(LFS_POINTER), 0))
    yield Position(tail.offset, number, tail.length)
    if tail.length and reader.is_packed:
        # Nothing is appended to a compressed file: the rest of the line will not come.
        yield Problem(number + 1, tail.offset, tail.length, "the compressed file ends in the middle of a line")


def _line(line: Line, shard: Shard, number: int) -> Sequence[Entry | Update | Problem | Unknown]:
    buffer, start, end, offset = line
    length = end - start
    if length < SHORT and not buffer[start:end].strip():
        return []  # a blank line
    reason = ""
    for read in (read_record, read_leniently):
        try:
            record, remarks = read(buffer, start, end)
            found = _found(record, line, shard, number)
        except RecursionError:
            reason = "nested too deeply"
        except ValueError as error:
            reason = str(error)
        else:
            if not found:
                return [Unknown(number, offset, length, 1, _what(record, line))]
            if not remarks:
                return found
            return [*(Problem(number, offset, length, f"read in part: {remark}") for remark in remarks), *found]
    if offset == 0:
        refuse_pointer(bytes(buffer[start : start + len(LFS_POINTER)]))
    return [Problem(number, offset, length, f"not readable: {reason}")]


def _found(record: Record, line: Line, shard: Shard, number: int) -> Sequence[Entry | Update | Problem]:
    what = kind(record)
    if what in ("trace", "episode"):
        return trace_entries(record, shard, line.offset, line.length, number)
    if what == "v0":
        flat = flat_values(copied(*line[:3])) if record.metrics is None else {}
        return [v0_entry(record, shard, line.offset, line.length, number, flat)]
    return [update(record, line.offset, line.length, number)] if what == "update" else []


def _no_rollouts(what: str, strange: str) -> NotRollouts:
    # Known is only what is so from line to line: one that nobody understands may have been meant to be read.
    return NotRollouts(strange) if strange else KnownOther(what)


def _joined(before: Unknown | None, now: Unknown) -> Unknown:
    if before is None:
        return now
    length = now.offset + now.length - before.offset
    return Unknown(before.line, before.offset, length, before.lines + now.lines, before.what)


def _what(record: Record, line: Line) -> str:
    """Say what a line is that is no rollout record."""
    if known := OTHER_KINDS.get(kind(record) or ""):
        return known
    try:
        value: Any = decode_leniently(copied(*line[:3]))[0]
    except ValueError:
        value = None
    names = [str(name)[:40] for name in value] if isinstance(value, dict) else []
    return "keys: " + ", ".join(names[:8]) + (" …" if len(names) > 8 else "") if names else "no keys"
