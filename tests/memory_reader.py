"""A file in memory that gives as few bytes at once as one likes."""

from __future__ import annotations


class MemoryReader:
    """Bytes in memory that give at most `most` of them at once, as some file systems do."""

    def __init__(self, data: bytes, most: int = 1 << 30) -> None:
        self.data, self.most, self.reads = data, most, 0

    def size(self) -> int:
        return len(self.data)

    def pread(self, length: int, offset: int) -> bytes:
        return self.data[offset : offset + length]

    def read_into(self, target: memoryview, offset: int) -> int:
        part = self.data[offset : offset + min(len(target), self.most)]
        target[: len(part)] = part
        self.reads += 1
        return len(part)

    def close(self) -> None:
        pass
