"""Random access into zstd files: by their seek table where they have one, else by reading from the start.

The seek table is the one of zstd's seekable format: a skippable frame (magic 0x184D2A5E) at the end of the
file that lists the compressed and uncompressed size of each frame, closed by the number of frames, a byte of
flags and the magic number 0x8F92EAB1 (facebook/zstd, contrib/seekable_format).
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections import OrderedDict

from .base import LocatorError

FOOTER = struct.Struct("<IBI")
SEEKABLE_MAGIC = 0x8F92EAB1
SKIPPABLE_MAGIC = 0x184D2A5E
MAX_FRAME_BYTES = 1 << 28  # prime-rl writes frames of 4 MiB; what claims far more is not trusted
MAX_FRAMES = 1 << 22
BLOCK = 1 << 20


class SeekableZstd:
    """Uncompressed bytes of a zstd file behind a descriptor that it owns."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.descriptor, self.name = descriptor, name
        self.packed_starts: list[int] = []
        self.starts: list[int] = []  # uncompressed start of each frame, then the end of the last one
        self.frames: OrderedDict[int, bytes] = OrderedDict()
        self.forward: _ForwardReader | None = None
        try:
            self._read_seek_table()
        except BaseException:
            os.close(descriptor)
            raise

    def _read_seek_table(self) -> None:
        size = os.fstat(self.descriptor).st_size
        footer = os.pread(self.descriptor, FOOTER.size, max(0, size - FOOTER.size))
        count, flags, magic = FOOTER.unpack(footer) if len(footer) == FOOTER.size else (0, 0, 0)
        entry = struct.Struct("<III" if flags & 0x80 else "<II")
        table_start = size - FOOTER.size - count * entry.size
        if magic != SEEKABLE_MAGIC or count > MAX_FRAMES or table_start < 8:
            return
        if struct.unpack("<I", os.pread(self.descriptor, 4, table_start - 8))[0] != SKIPPABLE_MAGIC:
            return
        packed = start = 0
        packed_starts, starts = [0], [0]
        for sizes in entry.iter_unpack(os.pread(self.descriptor, count * entry.size, table_start)):
            if sizes[1] > MAX_FRAME_BYTES:
                raise LocatorError(f"{self.name}.zst has a frame of {sizes[1]:,} bytes, more than is read at once.")
            packed, start = packed + sizes[0], start + sizes[1]
            packed_starts.append(packed)
            starts.append(start)
        if packed == table_start - 8:  # the frames fill the file up to the table, or the table is not to be believed
            self.packed_starts, self.starts = packed_starts, starts

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
        os.close(self.descriptor)

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

            packed = os.pread(
                self.descriptor, self.packed_starts[number + 1] - self.packed_starts[number], self.packed_starts[number]
            )
            expected = self.starts[number + 1] - self.starts[number]
            try:
                data = zstandard.ZstdDecompressor().decompress(packed, max_output_size=expected)
            except zstandard.ZstdError as error:
                raise LocatorError(f"{self.name}.zst is damaged: {error}.") from None
            if len(data) != expected:
                raise LocatorError(f"{self.name}.zst is damaged: a frame is shorter than its seek table says.")
            self.frames[number] = data
            if len(self.frames) > 2:  # a record may lie across two frames
                self.frames.popitem(last=False)
        return self.frames[number]

    def _forward_to(self, offset: int) -> _ForwardReader:
        if self.forward is None or self.forward.offset > offset:
            self.forward = _ForwardReader(self.descriptor, self.name)
        self.forward.skip(offset - self.forward.offset)
        return self.forward


class _ForwardReader:
    """Reads a zstd file without a seek table from its start."""

    def __init__(self, descriptor: int, name: str) -> None:
        import zstandard

        self.name, self.offset, self.error = name, 0, zstandard.ZstdError
        os.lseek(descriptor, 0, os.SEEK_SET)
        source = os.fdopen(os.dup(descriptor), "rb")
        self.stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
            source, read_across_frames=True, closefd=True
        )

    def read(self, length: int) -> bytes:
        try:
            data = self.stream.read(length)
        except self.error as error:
            raise LocatorError(f"{self.name}.zst is damaged after byte {self.offset:,}: {error}.") from None
        self.offset += len(data)
        return data

    def skip(self, length: int) -> None:
        while length > 0 and (data := self.read(min(BLOCK, length))):
            length -= len(data)

    def skip_to_end(self) -> int:
        while self.read(BLOCK):
            pass
        return self.offset
