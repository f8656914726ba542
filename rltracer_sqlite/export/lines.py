"""Rows as lines of JSON, plain or compressed, and the format that the name of a file means."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

Row = dict[str, Any]
GZIP_LEVEL = 6
GZIP_WINDOW = 31  # zlib's way to say gzip; its header then holds no time, so the same rows are the same bytes
ZSTD_LEVEL = 6
CHUNK_BYTES = 1 << 16
ENDINGS = {".gz": "gzip", ".zst": "zstd", ".parquet": "parquet"}


def format_of(path: Path) -> str:
    """Return the format that a file name means: jsonl, gzip, zstd (both of JSONL) or parquet."""
    return ENDINGS.get(path.suffix.lower(), "jsonl")


def line(row: Row) -> bytes:
    """Return a row as one line of JSON in UTF-8, compact, with its newline."""
    try:
        return orjson.dumps(row) + b"\n"
    except (TypeError, orjson.JSONEncodeError):
        # Half a surrogate pair is no text, and orjson takes no whole number beyond 64 bits.
        text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace") + b"\n"


def lines(rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield the lines of rows, several of them in one piece where they are short."""
    pieces: list[bytes] = []
    size = 0
    for row in rows:
        pieces.append(line(row))
        size += len(pieces[-1])
        if size >= CHUNK_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)


def packed(chunks: Iterable[bytes], kind: str) -> Iterator[bytes]:
    """Yield chunks as they are, or compressed as `kind` says."""
    if kind == "gzip":
        compressor: Any = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WINDOW)
    elif kind == "zstd":
        import zstandard

        compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compressobj()
    else:
        yield from chunks
        return
    for chunk in chunks:
        if part := compressor.compress(chunk):
            yield part
    yield compressor.flush()
