"""Rows of Parquet files. Needs pyarrow; a row is addressed by its number in the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..base import LocatorError, SourceError
from ..byte_file import ByteFile
from ..files import ByteReader, open_shard
from ..places import Root
from .rows import Row

INSTALL = "pip install 'datasette-rltracer[parquet]'"
MAGIC = b"PAR1"
ROWS = 64  # decoded at a time


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
class RowGroup:
    """The rows of one row group: as little of a file as can be decoded."""

    path: str
    first: int  # the number of its first row in the file
    rows: list[dict[str, Any]]
    numbers: frozenset[str]

    def holds(self, path: str, number: int) -> bool:
        """Say whether a row of a file is in this group."""
        return path == self.path and self.first <= number < self.first + len(self.rows)

    def row(self, number: int) -> Row:
        """Return a row by its number in the file."""
        return Row(self.rows[number - self.first], self.numbers)


def load_row_group(root: Root, path: str, number: int) -> RowGroup:
    """Return the row group that holds a row. Raises LocatorError."""
    try:
        with open_shard(root, path) as reader:
            table, first = _opened(reader, path), 0
            with decoding():
                for group in range(table.num_row_groups):
                    count = table.metadata.row_group(group).num_rows
                    if 0 <= first <= number < first + count:
                        rows = [_without_nan(row) for row in table.read_row_group(group).to_pylist()]
                        return RowGroup(path, first, rows, _number_columns(table))
                    first += count
    except ParquetError as error:
        raise LocatorError(f"{path} cannot be read: {error}.") from None
    raise LocatorError(f"{path} has no row {number + 1:,}: it has changed since it was indexed. Index the run again.")


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
