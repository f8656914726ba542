"""Whether a place holds a mapping's files, judged by the first records of a few of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..base import Shard, SourceError
from ..files import MAX_RECORD_BYTES, open_shard
from ..lines import Tail, complete_lines
from ..parquet_file import ParquetError, has_pyarrow
from ..places import Root, base_folder
from ..readers import ByteReader
from .files import MOST_VISITED, candidates, shard_of
from .json_array import array_elements, is_array
from .mapping import Mapping
from .parquet import parquet_rows
from .rows import BOM, Row, read_object
from .shapes import shape_of
from .sqlite import sqlite_rows

FILES = 20  # looked into before a place is said not to be recognised
RECORDS = 5  # of each


def recognised(root: Root, mapping: Mapping, others: tuple[Mapping, ...] = ()) -> bool:
    """Say whether one of the files at `root` holds records of a mapping's shapes.

    `others` come first: a file with a record that one of them reads is theirs.
    """
    for shard in islice(candidates(root, mapping, MOST_VISITED), FILES):
        rows = [] if shard.aside else sample(root, shard, mapping.table)
        mine = any(shape_of(row, mapping) for row in rows)
        if mine and not any(_is_of(root, shard, rows, other) for other in others):
            return True
    return False


def _is_of(root: Root, shard: Shard, rows: list[Row], mapping: Mapping) -> bool:
    if root.is_file():
        named = any(True for _ in candidates(root, mapping))
    else:
        named = shard_of(base_folder(root), shard.file, mapping) is not None
    return named and any(shape_of(row, mapping) for row in rows)


def sample(root: Root, shard: Shard, table: str | None = None, records: int = RECORDS) -> list[Row]:
    """Return the first records of a shard; [] where none can be read."""
    try:
        if shard.layout == "sqlite":
            return [row for _, row in islice(sqlite_rows(root, shard.path, table), records)]
        with open_shard(root, shard.path) as reader:
            if shard.layout == "parquet":
                return list(islice(parquet_rows(reader, shard.path), records)) if has_pyarrow() else []
            return list(islice(_objects(reader, shard.layout), records))
    except (SourceError, ParquetError, OSError):
        return []


def _objects(reader: ByteReader, layout: str) -> Iterator[Row]:
    for data in _records(reader, layout):
        try:
            yield Row(read_object(data)[0])
        except ValueError:
            continue


def _records(reader: ByteReader, layout: str) -> Iterator[bytes]:
    if layout == "json" and is_array(reader):
        for place in array_elements(reader):
            if place is not None and place[1] <= MAX_RECORD_BYTES:
                yield reader.pread(place[1], place[0])
        return
    # A line that is no object does not count as one of the records, but only so many are looked at.
    for line in islice(complete_lines(reader), 4 * RECORDS):
        if isinstance(line, Tail):
            yield reader.pread(line.length, line.offset)
        else:
            yield bytes(line.buffer[line.start : line.end]).removeprefix(BOM)
