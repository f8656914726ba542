"""What gives the bytes of an open file at any offset, and the file of this machine that does."""

from __future__ import annotations

import os
from typing import Protocol


class ByteReader(Protocol):
    """Uncompressed bytes at any offset."""

    is_packed: bool  # they are compressed in the file, to which nothing is appended

    def size(self) -> int:
        """Return the number of uncompressed bytes."""
        ...

    def pread(self, length: int, offset: int) -> bytes:
        """Return at most `length` bytes from `offset`; fewer only at the end."""
        ...

    def read_into(self, target: memoryview, offset: int) -> int:
        """Fill `target` from `offset` on and return the number of bytes; 0 at the end."""
        ...

    def close(self) -> None: ...


class PackedReader(ByteReader, Protocol):
    """The bytes of a file as they stand in it."""

    def whole(self) -> PlainFile:
        """Return all of the file as a local one, for what cannot be read in pieces."""
        ...


class PlainFile:
    """An uncompressed file behind a descriptor that it owns."""

    is_packed = False

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def pread(self, length: int, offset: int) -> bytes:
        parts = []
        # One call returns at most 2 GiB, and less on some network file systems.
        while length > 0 and (part := read_at(self.descriptor, length, offset)):
            parts.append(part)
            length -= len(part)
            offset += len(part)
        return b"".join(parts)

    def read_into(self, target: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self.descriptor, [target], offset)
        part = read_at(self.descriptor, len(target), offset)
        target[: len(part)] = part
        return len(part)

    def close(self) -> None:
        os.close(self.descriptor)

    def whole(self) -> PlainFile:
        """Return all of the file as a local one, which it is."""
        return PlainFile(os.dup(self.descriptor))


def read_at(descriptor: int, length: int, offset: int) -> bytes:
    """Return at most `length` bytes from `offset`, and leave the position of the descriptor where it was."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    before = os.lseek(descriptor, 0, os.SEEK_CUR)  # Windows; nobody else reads from our descriptors
    try:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, length)
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)
