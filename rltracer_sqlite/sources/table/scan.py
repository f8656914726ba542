"""Scanning one shard of a table, whatever contains its records: what each record says, and where they end."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from ...tokens.tokenizer import TextTokenizer
from ..base import Position, Problem, Shard
from ..files import LFS_POINTER, MAX_RECORD_BYTES, open_shard, refuse_pointer
from ..lines import Tail, complete_lines, lines_before
from ..parquet_file import ParquetError
from ..places import Root
from ..readers import ByteReader
from .entries import Place
from .joined import Finding, Read, Remark
from .json_array import array_elements, is_array
from .mapping import Mapping
from .outputs import Output
from .parquet import parquet_rows
from .records import RecordReader
from .repeats import Overlap, overlap, told_overlap
from .rollouts import Told, told_before
from .rows import BOM, Row, read_object
from .sqlite import sqlite_rows


def table_findings(
    root: Root,
    shard: Shard,
    start: Position,
    stop: int | None,
    mapping: Mapping,
    tokenizer: TextTokenizer | None,
) -> Iterator[Finding]:
    """Yield what each record of a shard says, and the position behind the last of them.

    Only lines go on from `start`, any other file is read as a whole.
    """
    scan = _Scan(RecordReader(mapping, shard, tokenizer))
    if shard.layout == "sqlite":
        yield from scan.sqlite(root, shard.path, mapping.table)
        return
    before = shard.beside[-1] if shard.beside else ""
    found = overlap(root, shard.path, before, mapping) if before else Overlap()
    with open_shard(root, shard.path) as reader:
        if shard.layout == "parquet":
            refuse_pointer(reader.pread(len(LFS_POINTER), 0))
            yield from scan.parquet(reader, shard.path, found, before)
        elif shard.layout == "json" and is_array(reader):
            yield from scan.array(reader)
        else:
            yield from scan.lines(reader, start, stop)


class _Scan:
    def __init__(self, records: RecordReader) -> None:
        self.records = records

    def lines(self, reader: ByteReader, start: Position, stop: int | None) -> Iterator[Finding]:
        number = start.line
        # A last line without a newline has been read: what follows it up to the newline is no line of its own.
        continues = start.offset > 0 and reader.pread(1, start.offset - 1) != b"\n"
        # A part that begins with a line of its own counts from 0: what is before it another one yields.
        if start.line and self.records.mapping.has_outputs:
            yield from self._told_before(reader, start)
        for line in complete_lines(reader, start.offset, stop):
            if isinstance(line, Tail):
                yield from self._tail(reader, line, number)
                return
            number += not (continues and line.offset == start.offset)
            # Not copied: a line may be megabytes. Nothing holds on to the view when the next line is asked for.
            yield from self._line(memoryview(line.buffer)[line.start : line.end], line.offset, number)
            yield Read(number, line.offset + line.length + 1, self.records.fitted)

    def _told_before(self, reader: ByteReader, start: Position) -> Iterator[Told]:
        """Yield the outputs that stand before `start` and to whose rollout the next row may belong.

        They begin where the rollout before theirs ends, so that they are put together as they were.
        """
        offsets, rollout = array("q"), None
        for offset, line in lines_before(reader, start.offset):
            output = self._output(line, offset, start.line - len(offsets)) if line.strip() else None
            if line.strip() and (output is None or rollout not in (None, output.rollout)):
                break
            rollout = output.rollout if output else rollout
            offsets.append(offset)
        for back in range(len(offsets) - 1, -1, -1):
            end = offsets[back - 1] if back else start.offset
            line = reader.pread(end - offsets[back], offsets[back]).removesuffix(b"\n")
            if told := self._output(line, offsets[back], start.line - back):
                yield told

    def _output(self, line: bytes, offset: int, number: int) -> Told | None:
        for one in self._line(line, offset, number):
            if isinstance(one, Output):
                return told_before(one)
        return None

    def _tail(self, reader: ByteReader, tail: Tail, number: int) -> Iterator[Finding]:
        # An object that is closed cannot go on: it is complete although no newline follows it.
        if tail.length and reader.pread(64, max(tail.offset, tail.offset + tail.length - 64)).rstrip()[-1:] == b"}":
            data = reader.pread(tail.length, tail.offset)
            if _is_object(data):
                yield from self._line(data, tail.offset, number + 1)
                tail, number = Tail(tail.offset + tail.length, 0), number + 1
                yield Read(number, tail.offset, self.records.fitted)
        if tail.offset == 0 and tail.length:
            refuse_pointer(reader.pread(len(LFS_POINTER), 0))
        yield Position(tail.offset, number, tail.length)

    def array(self, reader: ByteReader) -> Iterator[Finding]:
        number = 0
        for place in array_elements(reader):
            if place is None:
                yield Problem(number + 1, 0, reader.size(), "the array has no end: what came last is missing")
                break
            number += 1
            if place[1] <= MAX_RECORD_BYTES:
                yield from self._line(reader.pread(place[1], place[0]), place[0], number)
                yield Read(number, 0, self.records.fitted)
            else:
                yield Problem(number, *place, f"an element larger than {MAX_RECORD_BYTES >> 20:,} MiB")
        yield Position(reader.size(), number)

    def parquet(self, reader: ByteReader, name: str, found: Overlap, before: str) -> Iterator[Finding]:
        size, number, repeated = reader.size(), 0, found.rows if found.is_sure else 0
        try:
            for row in parquet_rows(reader, name):
                number += 1
                if number > repeated:
                    yield from self.records.read(row, Place(0, size, number, numbered=True))
                    yield Read(number, 0, self.records.fitted)
        except ParquetError as error:
            yield Problem(number + 1, 0, size, f"not readable from row {number + 1:,} on: {error}")
        if found.rows:
            yield told_overlap(found, size, before)
        yield Position(size, number)

    def sqlite(self, root: Root, path: str, table: str | None) -> Iterator[Finding]:
        with open_shard(root, path) as reader:
            size, number = reader.size(), 0
        for rowid, row in sqlite_rows(root, path, table):
            number += 1
            yield from self.records.read(row, Place(0, size, rowid, numbered=True))
            yield Read(number, 0, self.records.fitted)
        yield Position(size, number)

    def _line(self, data: bytes | memoryview, offset: int, line: int) -> Iterator[Finding]:
        """Yield what the bytes of one record give. Nothing keeps pointing into `data` afterwards."""
        length = len(data)
        if not bytes(data[:64]).strip() and not bytes(data).strip():
            return
        try:
            cells, remark = read_object(data[3:] if offset == 0 and data[:3] == BOM else data)
        except ValueError as error:
            refuse_pointer(bytes(data[: len(LFS_POINTER)]))
            yield Problem(line, offset, length, f"not readable: {error}")
            return
        if remark:
            yield Remark(line, offset, length, remark)
        yield from self.records.read(Row(cells), Place(offset, length, line))


def _is_object(data: bytes) -> bool:
    try:
        read_object(data)
    except ValueError:
        return False
    return True
