"""Rows of Parquet files. Needs pyarrow; a row is addressed by its number in the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..base import LocatorError, SourceError
from ..byte_file import ByteFile
from ..files import open_shard
from ..places import Root
from ..readers import ByteReader
from .rows import Row

INSTALL = "pip install 'datasette-rltracer[parquet]'"
MAGIC = b"PAR1"
ROWS = 64  # decoded at a time
NEAR = 10 * ROWS  # a row that is so many behind is reached by reading on


class ParquetError(ValueError):
    """A file that is no Parquet, or is damaged."""


def has_pyarrow() -> bool:
    """Say whether Parquet files can be read here."""
    from importlib.util import find_spec

    return find_spec("pyarrow") is not None


def parquet_rows(reader: ByteReader, name: str) -> Iterator[Row]:
    """Yield the rows of a Parquet file. Raises ParquetError, and SourceError where pyarrow is not installed."""
    table = _opened(reader, name)
    with decoding():
        numbers = _number_columns(table)
    yield from (Row(_without_nan(row), numbers) for row in batched_rows(table))


def batched_rows(table: Any, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of an open Parquet file, a few decoded at a time. Raises ParquetError."""
    with decoding():
        batches = table.iter_batches(batch_size=ROWS, columns=columns)
    while True:
        with decoding():
            batch = next(batches, None)
            rows = batch.to_pylist() if batch is not None else []
        if batch is None:
            return
        yield from rows


@contextmanager
def decoding() -> Iterator[None]:
    """Turn whatever pyarrow raises for a damaged file into a ParquetError: its decoders have errors of all kinds."""
    try:
        yield
    except Exception as error:
        raise ParquetError(f"{error}") from None


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
        table, first = _opened(reader, path), 0
        with decoding():
            counts = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
            numbers = _number_columns(table)
        for group, count in enumerate(counts):
            end = first + count
            if number >= end:
                first = end
                continue
            for batch in _batches(table, group):
                if first + batch.num_rows > number:
                    with decoding():
                        rows = [_without_nan(row) for row in batch.to_pylist()]
                    yield Window(path, first, rows, numbers)
                first += batch.num_rows


def _batches(table: Any, group: int) -> Iterator[Any]:
    with decoding():
        batches = table.iter_batches(batch_size=ROWS, row_groups=[group])
    while True:
        with decoding():
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _opened(reader: ByteReader, name: str) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise SourceError(f"{name} is a Parquet file, which needs pyarrow: {INSTALL}.") from None
    with decoding():
        return pyarrow.parquet.ParquetFile(ByteFile(reader))


def _number_columns(table: Any) -> frozenset[str]:
    import pyarrow

    is_number = (pyarrow.types.is_floating, pyarrow.types.is_integer)
    return frozenset(field.name for field in table.schema_arrow if any(test(field.type) for test in is_number))


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and value != value else value for name, value in row.items()}
