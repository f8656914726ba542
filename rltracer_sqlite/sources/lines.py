"""Lines of a JSONL shard: byte offsets on "\\n" only, a reused buffer, and JSON read leniently where it must be."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from .files import ByteReader

CHUNK_BYTES = 4 << 20
MAX_LINE_BYTES = 1 << 30


class Line(NamedTuple):
    """One complete line: `buffer[start:end]`, without its newline, at `offset` in the shard."""

    buffer: bytearray
    start: int
    end: int
    offset: int


class Tail(NamedTuple):
    """What is left behind the last newline: nothing, or a line that is not finished yet."""

    offset: int
    length: int


def complete_lines(reader: ByteReader, start: int = 0) -> Iterator[Line | Tail]:
    """Yield each complete line from `start` on, then a `Tail`.

    Only "\\n" ends a line: writers leave U+2028 and U+0085 inside strings. The buffer is used again for the
    next chunk, so a line is valid until the next one is asked for; it grows only for a line longer than itself.
    """
    buffer, kept, base = bytearray(CHUNK_BYTES), 0, start
    while True:
        if kept == len(buffer):
            # A quarter at a time: doubling would take three times the longest line while it copies.
            buffer.extend(bytes(max(CHUNK_BYTES, len(buffer) // 4)))
        with memoryview(buffer) as view:
            count = reader.read_into(view[kept:], base + kept)
        if count == 0:
            yield Tail(base, kept)
            return
        filled, begin, search = kept + count, 0, kept
        while (end := buffer.find(b"\n", search, filled)) >= 0:
            yield Line(buffer, begin, end, base + begin)
            begin = search = end + 1
        kept, base = filled - begin, base + begin
        if begin:
            buffer[:kept] = buffer[begin:filled]


def decode_leniently(line: bytes) -> tuple[Any, str | None]:
    """Return the JSON value of a line that a strict parser refuses, and a remark where something was replaced.

    NaN and infinities, which Python's own writer leaves in, become None; so do numbers beyond a double.
    Raises ValueError when it is no JSON at all, or nested too deeply.
    """
    remark = None
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        text = line.decode(errors="replace")
        remark = f"invalid UTF-8 at byte {error.start} of the record, shown with replacement characters"
    try:
        value = json.loads(text, parse_constant=lambda _: None, parse_float=_finite, strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value, remark


def reencoded(value: Any) -> bytes:
    """Return a leniently decoded value as strict JSON bytes."""
    # "replace" turns a lone surrogate, which is no text, into a question mark.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None
