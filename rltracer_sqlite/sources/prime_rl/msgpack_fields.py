"""Fields of a MessagePack record, decoded one by one and only as far as they are needed."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from ...amounts import plural
from .msgpack_frames import NIL, Frame, array_header, field_ends

IDS = msgspec.msgpack.Decoder(list[Annotated[int, msgspec.Meta(ge=0, lt=2**32)]])
NUMBERS = msgspec.msgpack.Decoder(list[float | None])
TEXTS = msgspec.msgpack.Decoder(list[str])
RAWS = msgspec.msgpack.Decoder(list[msgspec.Raw])
VALUES = msgspec.msgpack.Decoder(list[Any])
ANY = msgspec.msgpack.Decoder()

FLOAT_TAG, FLOAT_WIDTH = 0xCB, 9
FALSE_TRUE = b"\xc2\xc3"
TO_MASK = bytes.maketrans(FALSE_TRUE, b"\0\1")


def split_record(data: bytes, frame: Frame | None = None) -> list[memoryview]:
    """Return the fields of a record's bytes. Raises ValueError where it is no list of at least five."""
    if frame is not None and frame.ends:
        parts = _parts(data, frame.ends)
    else:
        try:
            parts = [memoryview(part) for part in RAWS.decode(data)]
        except RecursionError:  # a scan, which skips by other means, gets past a field that is nested as deep
            parts = _parts(data, field_ends(data))
    if len(parts) < 5:
        raise ValueError(f"a list of {len(parts)} fields")
    return parts


def _parts(data: bytes, ends: list[int]) -> list[memoryview]:
    whole = memoryview(data)
    return [whole[start:end] for start, end in pairwise(ends)]


class Fields:
    """The fields of one record by name. What cannot be used is None, and is told in `remarks`."""

    def __init__(self, parts: Mapping[str, memoryview]) -> None:
        self.parts = parts
        self.remarks: list[str] = []

    def ids(self, name: str) -> list[int]:
        """Return token ids. Raises ValueError where they are missing or no ids."""
        return IDS.decode(self.parts[name])

    def mask(self, name: str, length: int) -> bytes | None:
        """Return a byte 1 or 0 for each of `length` recorded booleans."""
        part = self._recorded(name)
        header = array_header(part, 0) if part is not None else None
        if part is None or header is None:
            self._unusable(name, part)
            return None
        body = bytes(part[header[1] :])
        if body.translate(None, FALSE_TRUE):
            self._unusable(name, part)
            return None
        return body.translate(TO_MASK) if self._fits(name, len(body), length) else None

    def numbers(self, name: str, length: int) -> list[Any] | None:
        """Return `length` recorded numbers."""
        values = self.list_of(name, NUMBERS)
        return values if values is not None and self._fits(name, len(values), length) else None

    def list_of(self, name: str, decoder: msgspec.msgpack.Decoder[list[Any]]) -> list[Any] | None:
        """Return a recorded list of any length."""
        part = self._recorded(name)
        if part is None:
            return None
        try:
            return decoder.decode(part)
        except (ValueError, RecursionError):
            self._unusable(name, part)
            return None

    def number_at(self, name: str, at: int, length: int) -> float | None:
        """Return one of `length` recorded numbers, without decoding the others where they are plain floats."""
        part = self._recorded(name)
        header = array_header(part, 0) if part is not None else None
        if part is None or header is None:
            return None
        start = header[1] + at * FLOAT_WIDTH
        # No number is wider than this, so a list of this size has only such.
        if header[0] == length and len(part) == header[1] + length * FLOAT_WIDTH and part[start] == FLOAT_TAG:
            return float(struct.unpack_from(">d", part, start + 1)[0])
        values = self.numbers(name, length)
        return values[at] if values else None

    def scalar(self, name: str) -> Any:
        """Return a recorded text, number or boolean; None for anything else."""
        part = self._recorded(name)
        try:
            value = ANY.decode(part) if part is not None and array_header(part, 0) is None else None
        except (ValueError, RecursionError):
            self._unusable(name, part)
            return None
        return value if isinstance(value, (str, int, float)) else None

    def text_runs(self, name: str, length: int) -> list[tuple[int, str]] | None:
        """Return `length` recorded texts as runs of equal ones: (number of the first, text)."""
        part = self._recorded(name)
        if part is None:
            return None
        try:
            runs, count = equal_runs(part)
        except (ValueError, IndexError):
            self._unusable(name, part)
            return None
        return runs if self._fits(name, count, length) else None

    def _recorded(self, name: str) -> memoryview | None:
        part = self.parts.get(name)
        return None if part is None or not len(part) or part[0] == NIL else part

    def _unusable(self, name: str, part: memoryview | None) -> None:
        told = f"{name} is no list of the expected kind"
        if part is not None and told not in self.remarks:
            self.remarks.append(told)

    def _fits(self, name: str, found: int, length: int) -> bool:
        told = f"{name} has {plural(found, 'value')} for {plural(length, 'token')}"
        if found != length and told not in self.remarks:
            self.remarks.append(told)
        return found == length


def equal_runs(part: memoryview) -> tuple[list[tuple[int, str]], int]:
    """Return the runs of a list of texts, and its length. Raises ValueError where it holds anything else.

    There is a name per token, nearly always the one before it: whole stretches are compared at once.
    """
    data = bytes(part)
    header = array_header(data, 0)
    if header is None:
        raise ValueError("no list")
    count, at = header
    runs, done = [], 0
    while done < count:
        size = _text_size(data, at)
        element = data[at : at + size]
        runs.append((done, msgspec.msgpack.decode(element, type=str)))
        repeated = _repetitions(data, at, element, count - done)
        done, at = done + repeated, at + repeated * size
    return runs, count


def _repetitions(data: bytes, at: int, element: bytes, most: int) -> int:
    """Return how often an element stands in a row from `at` on, at most `most` times."""
    size, repeated, stretch = len(element), 1, 1
    while stretch and repeated < most:
        wanted = min(stretch, most - repeated)
        start = at + repeated * size
        if data[start : start + wanted * size] == element * wanted:
            repeated, stretch = repeated + wanted, stretch * 2
        else:
            stretch = wanted // 2
    return repeated


def _text_size(data: bytes, at: int) -> int:
    kind = data[at]
    if 0xA0 <= kind <= 0xBF:
        return 1 + (kind & 0x1F)
    width = {0xD9: 1, 0xDA: 2, 0xDB: 4}.get(kind)
    if width is None:
        raise ValueError("no text")
    return 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "big")


def text_at(runs: Sequence[tuple[int, str]] | None, at: int) -> str | None:
    """Return the text of a position from the runs of `text_runs`."""
    if not runs:
        return None
    return next(text for first, text in reversed(runs) if first <= at)
