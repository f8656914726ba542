"""Where the records of a MessagePack shard and their fields begin and end, found by skipping: nothing is built.

prime-rl writes a list of micro batches (`rank_R.bin`), or a TrainingBatch: a list that begins with the list of its
samples. Which of the two a file is, its first bytes say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgpack

from ..base import NotRollouts
from ..files import MAX_RECORD_BYTES, refuse_pointer
from ..readers import ByteReader

BLOCK = 1 << 20
HEADER_BYTES = 32
MAX_FIELDS = 64  # whose places are kept; no record has half as many
NIL = 0xC0


class Beginning(NamedTuple):
    """What the first bytes of a shard say."""

    is_training_batch: bool
    records: int
    offset: int  # of the first record


class Frame(NamedTuple):
    """One record: its bytes are `length` from `offset` on, and its fields begin and end at `ends` in them."""

    offset: int
    length: int
    number: int  # from 1
    ends: list[int]  # where the first field begins, then where each ends; empty where the record is no list


class Torn(NamedTuple):
    """Where reading had to stop, and why. `cut_off`: the file ends before the record does."""

    offset: int
    number: int
    reason: str
    cut_off: bool


def read_beginning(reader: ByteReader) -> Beginning:
    """Return what kind of shard this is. Raises NotRollouts for anything but prime-rl's MessagePack."""
    head = reader.pread(HEADER_BYTES, 0)
    outer = array_header(head, 0)
    refuse_pointer(head)
    if outer is None:
        raise NotRollouts("no micro batches" if head else "an empty file")
    if outer[0] == 0:
        return Beginning(False, 0, outer[1])
    inner = array_header(head, outer[1])
    first = array_header(head, inner[1]) if inner else None
    if inner and (inner[0] == 0 or (first and first[0] and array_header(head, first[1]))):
        return Beginning(True, inner[0], inner[1])
    if first is None:
        raise NotRollouts("no micro batches")
    return Beginning(False, outer[0], outer[1])


def array_header(data: bytes | memoryview, at: int) -> tuple[int, int] | None:
    """Return (number of elements, offset of the first) of the MessagePack array at `at`; None if there is none."""
    kind = data[at] if at < len(data) else 0
    if 0x90 <= kind <= 0x9F:
        return kind & 0x0F, at + 1
    width = {0xDC: 2, 0xDD: 4}.get(kind)
    if width is None or at + 1 + width > len(data):
        return None
    return int.from_bytes(data[at + 1 : at + 1 + width], "big"), at + 1 + width


def frames(reader: ByteReader, beginning: Beginning, offset: int, done: int) -> Iterator[Frame | Torn]:
    """Yield each record from `offset` on, before which `done` records lie. Reads in blocks and keeps none."""
    unpacker = msgpack.Unpacker(_Stream(reader, offset), read_size=BLOCK, max_buffer_size=MAX_RECORD_BYTES)
    for number in range(done + 1, beginning.records + 1):
        start = offset + unpacker.tell()
        try:
            ends = _skip_record(unpacker, array_header(reader.pread(5, start), 0) is not None)
        except msgpack.OutOfData:
            yield Torn(start, number, f"the file ends inside record {number:,} of {beginning.records:,}", True)
            return
        except msgpack.exceptions.BufferFull:
            yield Torn(start, number, f"record {number:,} is larger than {MAX_RECORD_BYTES >> 20:,} MiB", False)
            return
        except (ValueError, msgpack.exceptions.UnpackException) as error:
            what = error if isinstance(error, msgpack.exceptions.ExtraData) or str(error) else "nested too deeply"
            yield Torn(start, number, f"record {number:,} is no valid MessagePack ({what})", False)
            return
        end = offset + unpacker.tell()
        yield Frame(start, end - start, number, [offset + each - start for each in ends])


def field_ends(data: bytes) -> list[int]:
    """Return where the fields of a record are, as in a `Frame`. Raises ValueError where its bytes are no whole list."""
    unpacker = msgpack.Unpacker(max_buffer_size=len(data))
    unpacker.feed(data)
    try:
        return _skip_record(unpacker, array_header(data, 0) is not None)
    except (msgpack.OutOfData, msgpack.exceptions.UnpackException):
        raise ValueError("no whole record") from None


def _skip_record(unpacker: msgpack.Unpacker, is_array: bool) -> list[int]:
    if not is_array:
        unpacker.skip()
        return []
    fields = unpacker.read_array_header()
    ends = [unpacker.tell()]
    for _ in range(fields):
        unpacker.skip()
        if len(ends) <= MAX_FIELDS:
            ends.append(unpacker.tell())
    return ends


class _Stream:
    """A file object over the bytes of a shard, as the unpacker wants it."""

    def __init__(self, reader: ByteReader, offset: int) -> None:
        self.reader, self.offset = reader, offset

    def read(self, size: int) -> bytes:
        data = self.reader.pread(size, self.offset)
        self.offset += len(data)
        return data
