"""Rows of Parquet files, each addressed by its number in the file. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..base import LocatorError
from ..files import open_shard
from ..parquet_file import ROWS, ParquetError, batches, decoded_rows, decoding, open_parquet
from ..places import Root
from ..readers import ByteReader
from .rows import Row

NEAR = 10 * ROWS  # a row that is so many behind is reached by reading on


def parquet_rows(reader: ByteReader, name: str) -> Iterator[Row]:
    """Yield the rows of a Parquet file. Raises ParquetError, and SourceError where pyarrow is not installed."""
    table = open_parquet(reader, name)
    with decoding():
        numbers = _number_columns(table)
    for batch in batches(table):
        yield from (Row(_without_nan(row), numbers) for row in decoded_rows(batch))


@dataclass
class Window:
    """Some rows of a file that stand one after another."""

    path: str
    first: int  # the number of its first row in the file
    rows: list[dict[str, Any]]
    numbers: frozenset[str]

    def holds(self, number: int) -> bool:
        """Say whether a row is among these."""
        return self.first <= number < self.first + len(self.rows)


class NumberedRows:
    """Rows of Parquet files by their numbers. A few are held at a time, however many a row group has.

    Rows that are asked for in their order are decoded once; any other has the batches before it in its row group read.
    """

    def __init__(self, root: Root) -> None:
        self.root = root
        self._window: Window | None = None
        self._following: Iterator[Window] = iter(())

    def row(self, path: str, number: int) -> Row:
        """Return a row by its number in a file. Raises LocatorError."""
        window = self._window
        if window is None or window.path != path or not 0 <= number - window.first < NEAR:
            window, self._following = None, _windows(self.root, path, number)
        try:
            while window is None or not window.holds(number):
                self._window = window = next(self._following, None)
                if window is None:
                    changed = "it has changed since it was indexed. Index the run again."
                    raise LocatorError(f"{path} has no row {number + 1:,}: {changed}")
        except ParquetError as error:
            raise LocatorError(f"{path} cannot be read: {error}.") from None
        return Row(window.rows[number - window.first], window.numbers)


def _windows(root: Root, path: str, number: int) -> Iterator[Window]:
    """Yield the rows of a file from the one with this number on. Raises ParquetError."""
    with open_shard(root, path) as reader:
        table, first = open_parquet(reader, path), 0
        with decoding():
            counts = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
            numbers = _number_columns(table)
        for group, count in enumerate(counts):
            end = first + count
            if number >= end:
                first = end
                continue
            for batch in batches(table, row_group=group):
                if first + batch.num_rows > number:
                    yield Window(path, first, [_without_nan(row) for row in decoded_rows(batch)], numbers)
                first += batch.num_rows


def _number_columns(table: Any) -> frozenset[str]:
    import pyarrow

    is_number = (pyarrow.types.is_floating, pyarrow.types.is_integer)
    return frozenset(field.name for field in table.schema_arrow if any(test(field.type) for test in is_number))


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and value != value else value for name, value in row.items()}
