"""Parquet files, decoded a few rows at a time by pyarrow: whatever it raises for a damaged one is a ParquetError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .base import SourceError
from .byte_file import ByteFile
from .readers import ByteReader

INSTALL = "pip install 'datasette-rltracer[parquet]'"
MAGIC = b"PAR1"  # at both ends of a file
ROWS = 64  # decoded at a time


class ParquetError(ValueError):
    """A file that is no Parquet, or is damaged."""


def has_pyarrow() -> bool:
    """Say whether Parquet files can be read here."""
    from importlib.util import find_spec

    return find_spec("pyarrow") is not None


def open_parquet(reader: ByteReader, name: str) -> Any:
    """Return pyarrow's ParquetFile of an open file. Raises ParquetError, and SourceError without pyarrow."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise SourceError(f"{name} is a Parquet file, which needs pyarrow: {INSTALL}.") from None
    with decoding():
        return pyarrow.parquet.ParquetFile(ByteFile(reader))


def batches(table: Any, columns: list[str] | None = None, row_group: int | None = None) -> Iterator[Any]:
    """Yield the rows of an open file, or of one of its row groups, as record batches. Raises ParquetError."""
    with decoding():
        groups = None if row_group is None else [row_group]
        found = table.iter_batches(batch_size=ROWS, row_groups=groups, columns=columns)
    while True:
        with decoding():
            batch = next(found, None)
        if batch is None:
            return
        yield batch


def decoded_rows(batch: Any) -> list[dict[str, Any]]:
    """Return the rows of a record batch. Raises ParquetError."""
    with decoding():
        rows: list[dict[str, Any]] = batch.to_pylist()
        return rows


@contextmanager
def decoding() -> Iterator[None]:
    """Turn whatever pyarrow raises for a damaged file into a ParquetError: its decoders have errors of all kinds."""
    try:
        yield
    except Exception as error:
        raise ParquetError(f"{error}") from None
