"""Scanning one shard of a table, whatever contains its records: entries, problems and positions out."""

from __future__ import annotations

from collections.abc import Iterator

from ...tokens.tokenizer import TextTokenizer
from ..base import NotRollouts, Position, Problem, Scanned, Shard
from ..files import ByteReader, open_shard
from ..lines import Tail, complete_lines
from ..places import Root
from .entries import Place
from .framing import array_elements, is_array
from .mapping import Mapping
from .parquet import ParquetError, parquet_rows
from .records import Found, RecordReader, Unfit
from .repeats import repeated_rows
from .rows import Row, read_object
from .sqlite import sqlite_rows

COMMIT_RECORDS = 4000
COMMIT_BYTES = 1 << 28
LFS_POINTER = b"version https://git-lfs"
BOM = b"\xef\xbb\xbf"


def scan_table(
    root: Root, shard: Shard, start: Position, mapping: Mapping, tokenizer: TextTokenizer | None
) -> Iterator[Scanned]:
    """Yield what a shard holds; only lines go on from `start`, any other file is read as a whole.

    Raises NotRollouts when the first records show that the file holds no rollouts.
    """
    scan = _Scan(RecordReader(mapping, shard, tokenizer))
    if shard.layout == "sqlite":
        yield from scan.sqlite(root, shard.path, mapping.table)
        return
    repeated = repeated_rows(root, shard.path, shard.beside[-1], mapping) if shard.beside else 0
    with open_shard(root, shard.path) as reader:
        if shard.layout == "parquet":
            yield from scan.parquet(reader, shard.path, repeated)
        elif shard.layout == "json" and is_array(reader):
            yield from scan.array(reader)
        else:
            yield from scan.lines(reader, start)


class _Scan:
    def __init__(self, records: RecordReader) -> None:
        self.records = records
        self.unfit: Unfit | None = None
        self.remarks: dict[str, tuple[Problem, int]] = {}  # what is said once for all records it is true of
        self.untold = 0  # records since the last position
        self.committed = 0  # bytes before the last position

    def lines(self, reader: ByteReader, start: Position) -> Iterator[Scanned]:
        number, self.committed = start.line, start.offset
        self.records.fitted = start.offset > 0
        # A last line without a newline has been read: what follows it up to the newline is no line of its own.
        continues = start.offset > 0 and reader.pread(1, start.offset - 1) != b"\n"
        for line in complete_lines(reader, start.offset):
            if isinstance(line, Tail):
                yield from self._tail(reader, line, number)
                return
            number += not (continues and line.offset == start.offset)
            # Not copied: a line may be megabytes. Nothing holds on to the view when the next line is asked for.
            found = self._line(memoryview(line.buffer)[line.start : line.end], line.offset, number)
            yield from self._told(found, Position(line.offset + line.length + 1, number))

    def _tail(self, reader: ByteReader, tail: Tail, number: int) -> Iterator[Scanned]:
        # An object that is closed cannot go on: it is complete although no newline follows it.
        if tail.length and reader.pread(64, max(tail.offset, tail.offset + tail.length - 64)).rstrip()[-1:] == b"}":
            data = reader.pread(tail.length, tail.offset)
            if _is_object(data):
                yield from self._told(self._line(data, tail.offset, number + 1))
                tail, number = Tail(tail.offset + tail.length, 0), number + 1
        if tail.offset == 0 and tail.length:
            _refuse_pointer(reader.pread(len(LFS_POINTER), 0))
        yield from self._end(Position(tail.offset, number, tail.length))

    def array(self, reader: ByteReader) -> Iterator[Scanned]:
        number = 0
        for place in array_elements(reader):
            if place is None:
                yield Problem(number + 1, 0, reader.size(), "the array has no end: what came last is missing")
                break
            number += 1
            yield from self._told(self._line(reader.pread(place[1], place[0]), place[0], number))
        yield from self._end(Position(reader.size(), number))

    def parquet(self, reader: ByteReader, name: str, repeated: int) -> Iterator[Scanned]:
        size, number = reader.size(), 0
        try:
            for row in parquet_rows(reader, name):
                number += 1
                if number > repeated:
                    yield from self._told(self.records.read(row, Place(0, size, number, numbered=True)))
        except ParquetError as error:
            yield Problem(number + 1, 0, size, f"not readable from row {number + 1:,} on: {error}")
        if repeated:
            what = f"the first {repeated:,} rows repeat the end of the file before this one and are counted there"
            yield Problem(1, 0, size, what)
        yield from self._end(Position(size, number))

    def sqlite(self, root: Root, path: str, table: str | None) -> Iterator[Scanned]:
        with open_shard(root, path) as reader:
            size, number = reader.size(), 0
        for rowid, row in sqlite_rows(root, path, table):
            number += 1
            yield from self._told(self.records.read(row, Place(0, size, rowid, numbered=True)))
        yield from self._end(Position(size, number))

    def _line(self, data: bytes | memoryview, offset: int, line: int) -> Found:
        """Return what the bytes of one record give. Nothing keeps pointing into `data` afterwards."""
        length = len(data)
        if not bytes(data[:64]).strip() and not bytes(data).strip():
            return []
        try:
            cells, remark = read_object(data[3:] if offset == 0 and data[:3] == BOM else data)
        except ValueError as error:
            _refuse_pointer(bytes(data[: len(LFS_POINTER)]))
            return [Problem(line, offset, length, f"not readable: {error}")]
        if remark:
            first, count = self.remarks.get(remark, (Problem(line, offset, length, remark), 0))
            self.remarks[remark] = first, count + 1
        return self.records.read(Row(cells), Place(offset, length, line))

    def _told(self, found: Found, after: Position | None = None) -> Iterator[Scanned]:
        """Yield what a record gave, and a position when it is time to commit; without `after`, one at the start."""
        for one in found:
            if isinstance(one, Unfit):
                self.unfit = self.unfit.joined(one) if self.unfit else one
                continue
            yield from self._tell_unfit()
            yield one
        self.untold += 1
        passed = (after.offset if after else 0) - self.committed
        if self.unfit is None and (self.untold >= COMMIT_RECORDS or passed >= COMMIT_BYTES):
            yield from self._tell_remarks()
            yield after or Position()
            self.untold, self.committed = 0, after.offset if after else 0

    def _tell_unfit(self) -> Iterator[Problem]:
        if self.unfit:
            yield self.unfit.problem()
            self.unfit = None

    def _tell_remarks(self) -> Iterator[Problem]:
        for first, count in self.remarks.values():
            first.reason = f"read in part: {first.reason}" + (f" (and {count - 1:,} records more)" if count > 1 else "")
            yield first
        self.remarks = {}

    def _end(self, reached: Position) -> Iterator[Scanned]:
        self.records.refuse()
        yield from self._tell_unfit()
        yield from self._tell_remarks()
        yield reached


def _is_object(data: bytes) -> bool:
    try:
        read_object(data)
    except ValueError:
        return False
    return True


def _refuse_pointer(beginning: bytes) -> None:
    if beginning.startswith(LFS_POINTER):
        raise NotRollouts("a Git LFS pointer instead of the file itself; run git lfs pull")
