"""Random access into zstd files: by their seek table where they have one, else by reading from the start.

The seek table is the one of zstd's seekable format: a skippable frame (magic 0x184D2A5E) at the end of the
file that lists the compressed and uncompressed size of each frame, closed by the number of frames, a byte of
flags and the magic number 0x8F92EAB1 (facebook/zstd, contrib/seekable_format).
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections import OrderedDict
from typing import IO, cast

from .base import LocatorError
from .byte_file import ByteFile
from .readers import PackedReader, PlainFile

FOOTER = struct.Struct("<IBI")
SEEKABLE_MAGIC = 0x8F92EAB1
SKIPPABLE_MAGIC = 0x184D2A5E
MAX_FRAME_BYTES = 1 << 24  # prime-rl writes frames of 4 MiB; far larger ones are read from the start, in blocks
MAX_FRAMES = 1 << 20
MAX_WINDOW_BYTES = 1 << 27  # what zstd itself allows by default
MAX_HEADER_BYTES = 18  # of a zstd frame
BLOCK = 1 << 20


class SeekableZstd:
    """Uncompressed bytes of a zstd file, whose reader it owns."""

    is_packed = True

    def __init__(self, packed: PackedReader, name: str) -> None:
        self.packed, self.name = packed, name
        self.packed_starts = array("Q")
        self.starts = array("Q")  # uncompressed start of each frame, then the end of the last one; empty: no table
        self.frames: OrderedDict[int, bytes] = OrderedDict()
        self.forward: _ForwardReader | None = None
        try:
            self._read_seek_table()
        except BaseException:
            packed.close()
            raise

    def _read_seek_table(self) -> None:
        size = self.packed.size()
        footer = self.packed.pread(FOOTER.size, max(0, size - FOOTER.size))
        count, flags, magic = FOOTER.unpack(footer) if len(footer) == FOOTER.size else (0, 0, 0)
        entry = struct.Struct("<III" if flags & 0x80 else "<II")
        table_start = size - FOOTER.size - count * entry.size
        if magic != SEEKABLE_MAGIC or count > MAX_FRAMES or table_start < 8:
            return
        if struct.unpack("<I", self.packed.pread(4, table_start - 8))[0] != SKIPPABLE_MAGIC:
            return
        packed_starts, starts = array("Q", [0]), array("Q", [0])
        table = self.packed.pread(count * entry.size, table_start)
        for packed, size, *_ in entry.iter_unpack(table[: len(table) // entry.size * entry.size]):
            if size == 0 or max(packed, size) > MAX_FRAME_BYTES:
                return  # what a frame "without content" holds would be passed over
            packed_starts.append(packed_starts[-1] + packed)
            starts.append(starts[-1] + size)
        # The frames fill the file up to the table, or the table is not to be believed.
        if packed_starts[-1] == table_start - 8:
            self.packed_starts, self.starts = packed_starts, starts

    @property
    def is_random_access(self) -> bool:
        """Say whether any place can be read without reading what lies before it."""
        return bool(self.starts)

    def size(self) -> int:
        if self.starts:
            return self.starts[-1]
        reader = self._forward_to(0)
        return reader.skip_to_end()

    def pread(self, length: int, offset: int) -> bytes:
        parts = []
        while length > 0 and (part := self._some(offset, length)):
            parts.append(part)
            length -= len(part)
            offset += len(part)
        return b"".join(parts)

    def read_into(self, target: memoryview, offset: int) -> int:
        part = self._some(offset, len(target))
        target[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if self.forward is not None:
            self.forward.close()
        self.packed.close()

    def _some(self, offset: int, length: int) -> bytes:
        if not self.starts:
            return self._forward_to(offset).read(length)
        if offset >= self.starts[-1]:
            return b""
        number = bisect_right(self.starts, offset) - 1
        begin = offset - self.starts[number]
        return self._frame(number)[begin : begin + length]

    def _frame(self, number: int) -> bytes:
        if number not in self.frames:
            import zstandard

            packed = self.packed.pread(
                self.packed_starts[number + 1] - self.packed_starts[number], self.packed_starts[number]
            )
            expected = self.starts[number + 1] - self.starts[number]
            try:
                # The size that a frame claims is allocated before it is read, so it must be the table's.
                claimed = zstandard.frame_content_size(packed)
                data = zstandard.ZstdDecompressor().decompress(packed, expected) if claimed in (-1, expected) else b""
            except zstandard.ZstdError as error:
                raise LocatorError(f"{self.name}.zst is damaged: {error}.") from None
            if len(data) != expected:
                raise LocatorError(f"{self.name}.zst is damaged: a frame is not as long as its seek table says.")
            self.frames[number] = data
            if len(self.frames) > 2:  # a record may lie across two frames
                self.frames.popitem(last=False)
        return self.frames[number]

    def _forward_to(self, offset: int) -> _ForwardReader:
        if self.forward is not None and self.forward.offset > offset:
            self.forward.close()
            self.forward = None
        if self.forward is None:
            self.forward = _ForwardReader(self.packed.whole(), self.name)
        self.forward.skip(offset - self.forward.offset)
        return self.forward


class _ForwardReader:
    """Reads a zstd file without a seek table from its start; it owns the file."""

    def __init__(self, packed: PlainFile, name: str) -> None:
        import zstandard

        self.packed, self.name, self.offset, self.error = packed, name, 0, zstandard.ZstdError
        self.stream = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).stream_reader(
            cast(IO[bytes], ByteFile(packed)), read_across_frames=True
        )

    def close(self) -> None:
        self.stream.close()  # type: ignore[no-untyped-call]
        self.packed.close()

    def read(self, length: int) -> bytes:
        try:
            data = self.stream.read(length)
        except self.error as error:
            raise LocatorError(f"{self.name}.zst is damaged after byte {self.offset:,}: {error}.") from None
        if not data and length > 0 and not is_whole(self.packed):
            # The decompressor takes the end of the file for the end of what was compressed.
            raise LocatorError(f"{self.name}.zst is damaged after byte {self.offset:,}: it ends too early.")
        self.offset += len(data)
        return data

    def skip(self, length: int) -> None:
        while length > 0 and (data := self.read(min(BLOCK, length))):
            length -= len(data)

    def skip_to_end(self) -> int:
        while self.read(BLOCK):
            pass
        return self.offset


def is_whole(packed: PlainFile) -> bool:
    """Say whether the last zstd frame of a file is complete, by the sizes in the headers of its blocks (RFC 8878)."""
    import zstandard

    offset, size = 0, packed.size()
    while offset < size:
        header = packed.pread(MAX_HEADER_BYTES, offset)
        if int.from_bytes(header[:4], "little") & 0xFFFFFFF0 == SKIPPABLE_MAGIC & 0xFFFFFFF0:
            offset += 8 + int.from_bytes(header[4:8], "little")
            continue
        try:
            offset += zstandard.frame_header_size(header)
        except zstandard.ZstdError:
            return False
        last = 0
        while not last and offset < size:
            block = int.from_bytes(packed.pread(3, offset), "little")
            last, repeated = block & 1, (block >> 1) & 3 == 1
            offset += 3 + (1 if repeated else block >> 3)
        offset += 4 if last and header[4] & 4 else 0  # a checksum
        if not last:
            return False
    return offset == size
