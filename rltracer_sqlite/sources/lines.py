"""Lines of a JSONL shard: byte offsets on "\\n" only, a reused buffer, and JSON read leniently where it must be."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from .base import LocatorError
from .readers import ByteReader

CHUNK_BYTES = 1 << 20  # small enough to stay in the cache of a core between being read and being searched
FINISH_BYTES = 1 << 18
MAX_LINE_BYTES = 1 << 30
MAX_DIGITS = 300  # what has more digits than a double can hold is no number of a rollout
NOT_FINITE = "a number that is not finite, taken as missing"
BYTE_ORDER_MARK = "\ufeff"
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class Line(NamedTuple):
    """One complete line: `buffer[start:end]`, without its newline, at `offset` in the shard."""

    buffer: bytearray
    start: int
    end: int
    offset: int

    @property
    def length(self) -> int:
        return self.end - self.start


class Tail(NamedTuple):
    """What is left behind the last newline: nothing, or a line that is not finished yet."""

    offset: int
    length: int


def complete_lines(reader: ByteReader, start: int = 0, stop: int | None = None) -> Iterator[Line | Tail]:
    """Yield each complete line that begins at `start` or behind it, and before `stop` where given; then a `Tail`.

    Only "\\n" ends a line: writers leave U+2028 and U+0085 inside strings. The buffer is used again for the
    next chunk, so a line, and every view of it, is to be let go of before the next one is asked for; it grows only
    for a line longer than itself.
    Raises LocatorError at a line of more than MAX_LINE_BYTES, such as a hole in a damaged file.
    """
    buffer, kept, base = bytearray(CHUNK_BYTES), 0, start
    last = sys.maxsize if stop is None else stop
    if stop is not None and (told := getattr(reader, "told_to_stop", None)):
        told(stop)
    while base < last:
        if kept > MAX_LINE_BYTES:
            raise LocatorError(
                f"The line at byte {base:,} is longer than {MAX_LINE_BYTES:,} bytes; reading stops there."
            )
        if kept == len(buffer):
            # An eighth at a time: doubling would take three times the longest line while it copies.
            buffer.extend(bytes(max(CHUNK_BYTES, len(buffer) // 8)))
        # Up to `stop`, and then no further than the end of the line that lies across it.
        room = kept + max(last - base - kept, FINISH_BYTES)
        with memoryview(buffer) as view:
            count = reader.read_into(view[kept:room], base + kept)
        if count == 0:
            yield Tail(base, kept)
            return
        filled, begin, search = kept + count, 0, kept
        while (end := buffer.find(b"\n", search, filled)) >= 0:
            yield Line(buffer, begin, end, base + begin)
            begin = search = end + 1
            if base + begin >= last:
                break
        kept, base = filled - begin, base + begin
        if begin:
            buffer[:kept] = buffer[begin:filled]
    yield Tail(base, 0)


def line_start(reader: ByteReader, cut: int, stop: int | None = None) -> int | None:
    """Return where the first line begins at `cut` or behind it, and before `stop`; None where none does.

    A line begins behind a newline, so that every line of a shard belongs to exactly one of its parts.
    """
    at = max(cut - 1, 0)
    while data := reader.pread(FINISH_BYTES, at):
        if (newline := data.find(b"\n")) >= 0:
            start = at + newline + 1
            return start if stop is None or start < stop else None
        at += len(data)
        if stop is not None and at >= stop:
            return None
    return None


def lines_before(reader: ByteReader, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) of the lines before `end`, where one ends, from the last one on."""
    at = end - 1 if end and reader.pread(1, end - 1) == b"\n" else end
    kept, last = b"", 0  # the lines not yielded are kept[:last], which begins at `at`
    while end:
        if (newline := kept.rfind(b"\n", 0, last)) >= 0:
            yield at + newline + 1, kept[newline + 1 : last]
            last = newline
        elif at:
            size = min(at, max(FINISH_BYTES, last))  # twice as much each time: a line may be long
            at -= size
            kept = reader.pread(size, at) + kept[:last]
            last = len(kept)
        else:
            yield 0, kept[:last]
            return


def decode_leniently(line: bytes | bytearray) -> tuple[Any, str | None]:
    """Return the JSON value of a line that a strict parser refuses, and a remark on what was replaced.

    NaN and infinities, which Python's own writer leaves in, become None; so do numbers beyond a double. What is no
    text, invalid UTF-8 or half of a surrogate pair, becomes a replacement character.
    Raises ValueError when it is no JSON at all, or nested too deeply.
    """
    remarks: dict[str, None] = {}

    def missing(text: str) -> Any:
        remarks[NOT_FINITE] = None

    def fraction(text: str) -> Any:
        return number if math.isfinite(number := float(text)) else missing(text)

    def whole(text: str) -> Any:
        return int(text) if len(text) <= MAX_DIGITS else missing(text)

    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        text = line.decode(errors="replace")
        remarks[f"invalid UTF-8 at byte {error.start:,} of the record, shown with replacement characters"] = None
    try:
        text = text.removeprefix(BYTE_ORDER_MARK)
        value = json.loads(text, parse_constant=missing, parse_float=fraction, parse_int=whole, strict=False)
        if SURROGATE.search(text) and (clean := json.loads(reencoded(value))) != value:
            value = clean
            remarks["half of a surrogate pair, shown as a replacement character"] = None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos:,}") from None
    return value, "; ".join(remarks) or None


def reencoded(value: Any) -> bytes:
    """Return a leniently decoded value as strict JSON bytes."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # In UTF-16 a pair of halves is a character again, and only a half that stands alone is replaced.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
