"""The rows of SFT files, compressed or not, and of the Parquet files of source rows that their prompts came from."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from ..export.lines import format_of
from .templates import RetemplateError

JSON_COLUMN = "jrow_json"
BATCH_ROWS = 64
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class TemplateSource:
    """A Parquet file of source rows, and the template that rendered the prompts which they are to be found by."""

    parquet: Path
    template: Path
    column: str | None = None  # the column of JSON; None: jrow_json, else the only column of text


def read_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (number from 1, row) of a JSONL file, compressed or not. Raises RetemplateError."""
    pending, number = b"", 0
    for chunk in _chunks(path):
        *complete, pending = (pending + chunk).split(b"\n")
        for one in complete:
            if one.strip():
                number += 1
                yield number, _decoded(one, path, number)
    if pending.strip():
        yield number + 1, _decoded(pending, path, number + 1)


def _chunks(path: Path) -> Iterator[bytes]:
    kind = format_of(path)
    if kind == "parquet":
        raise RetemplateError(f"{path} is Parquet: retemplate reads JSONL.")
    try:
        with path.open("rb") as file:
            yield from _unpacked_zstd(file) if kind == "zstd" else _unpacked(file, kind)
    except (EOFError, ValueError, zlib.error, gzip.BadGzipFile) as error:
        raise RetemplateError(f"{path} is damaged: {error}.") from None
    except OSError as error:
        raise RetemplateError(f"{path} cannot be read: {error.strerror or error}.") from None


def _unpacked(file: BinaryIO, kind: str) -> Iterator[bytes]:
    # One member behind another is one file too, and one that is cut off is an error.
    stream = gzip.GzipFile(fileobj=file) if kind == "gzip" else file
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def _unpacked_zstd(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of zstd frames, one behind another. Raises ValueError where they are damaged or cut off."""
    import zstandard

    from ..sources.readers import PlainFile
    from ..sources.seekable import is_whole

    decompressor = zstandard.ZstdDecompressor()
    try:
        with decompressor.stream_reader(file, read_across_frames=True, closefd=False) as reader:
            while chunk := reader.read(CHUNK_BYTES):
                yield chunk
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if not is_whole(PlainFile(file.fileno())):
        raise ValueError("it ends too early")


def _decoded(text: bytes, path: Path, number: int) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise RetemplateError(f"Row {number:,} of {path} is no JSON: {error}.") from None


def source_rows(source: TemplateSource) -> Iterator[Any]:
    """Yield the JSON of each row of a Parquet file, a few rows at a time. Raises RetemplateError."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise RetemplateError("Reading Parquet needs pyarrow: pip install 'datasette-rltracer[parquet]'.") from None
    try:
        with pyarrow.parquet.ParquetFile(source.parquet) as parquet:
            column = _column(source, parquet.schema_arrow)
            for batch in parquet.iter_batches(batch_size=BATCH_ROWS, columns=[column]):
                yield from batch.column(0).to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        raise RetemplateError(f"{source.parquet} cannot be read: {error}.") from None


def _column(source: TemplateSource, schema: Any) -> str:
    names = list(schema.names)
    wanted = source.column or (JSON_COLUMN if JSON_COLUMN in names else None)
    if wanted is None:
        texts = [field.name for field in schema if str(field.type) in ("string", "large_string")]
        wanted = texts[0] if len(texts) == 1 else None
    if wanted is None or wanted not in names:
        raise RetemplateError(
            f"{source.parquet} has no column {wanted or JSON_COLUMN} of JSON; it has {', '.join(names)}. Name it with "
            "--column."
        )
    return wanted
