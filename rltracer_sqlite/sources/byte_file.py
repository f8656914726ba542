"""A file object over the bytes of a shard, for libraries that read a file by themselves."""

from __future__ import annotations

import io
from typing import Any

from .readers import ByteReader


class ByteFile(io.RawIOBase):
    """Reads and seeks in a shard. Closing it leaves the shard open."""

    def __init__(self, reader: ByteReader) -> None:
        super().__init__()
        self.reader, self.at, self.end = reader, 0, reader.size()

    def readinto(self, buffer: Any) -> int:
        with memoryview(buffer) as view:
            target, filled = view.cast("B"), 0
            # A reader gives what is at hand; what reads a file takes fewer bytes for the end of it.
            while filled < len(target) and (count := self.reader.read_into(target[filled:], self.at)):
                filled += count
                self.at += count
        return filled

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.at = max(0, offset + (0, self.at, self.end)[whence])
        return self.at

    def tell(self) -> int:
        return self.at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True
