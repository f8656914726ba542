"""Reading one remote file in ranges: exactly what is asked for, and ahead where it is read from one end on.

An answer over a network takes as long as reading some megabytes, so bytes that follow each other are asked for in
ever larger pieces, the next one while the last one is used. What is held is given again without asking.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from .readers import PlainFile
    from .remote_listing import Status

FIRST = 256 << 10  # bytes of a file that may only be looked at
SMALL = 1 << 20  # bytes of a file that is read at once
LARGEST = 8 << 20  # bytes of one request
END = 64 << 10  # bytes from the end of a file, where a table of contents is
GROWTH = 4
HELD_BYTES = 32 << 20
HELD_PIECES = 64


class Held:
    """The bytes that were read last, of all files of a root; the oldest go first, the beginning of a file late."""

    def __init__(self) -> None:
        self.pieces: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self.bytes = 0

    def find(self, file: str, offset: int) -> memoryview:
        """Return the bytes that are held from `offset` on; none where that place is not held."""
        for (name, start), data in reversed(self.pieces.items()):
            if name == file and start <= offset < start + len(data):
                return memoryview(data)[offset - start :]
        return memoryview(b"")

    def add(self, file: str, start: int, data: bytes) -> None:
        """Hold some bytes."""
        self._drop((file, start))
        self.pieces[file, start] = data
        self.bytes += len(data)
        while self.bytes > HELD_BYTES or len(self.pieces) > HELD_PIECES:
            # What a file begins with is compared time and again, to see that it is still the same.
            later = (key for key in self.pieces if key[1] or key[0] != file)
            self._drop(next(later, next(iter(self.pieces))))

    def _drop(self, key: tuple[str, int]) -> None:
        self.bytes -= len(self.pieces.pop(key, b""))


class Below(Protocol):
    """What a remote file asks of the root that it lies below."""

    held: Held

    def status(self, file: str) -> Status: ...

    def read_range(self, file: str, start: int, end: int) -> bytes: ...

    def copy(self, reader: RemoteFile) -> PlainFile: ...


class RemoteFile:
    """The bytes of one remote file."""

    is_packed = False

    def __init__(self, root: Below, file: str) -> None:
        self.root, self.file = root, file
        self.end = root.status(file)[0]
        self.stop = self.end  # where reading on and on will end
        self.reached = -1  # the end of the last request
        self.window = FIRST
        self.ahead: tuple[int, Future[bytes]] | None = None
        self.pool: ThreadPoolExecutor | None = None

    def size(self) -> int:
        return self.end

    def told_to_stop(self, stop: int) -> None:
        """Take note that hardly anything from `stop` on will be read, so that it is not read ahead."""
        self.stop = stop

    def pread(self, length: int, offset: int) -> bytes:
        parts: list[bytes | memoryview] = []
        while length > 0 and (part := self._some(offset, length, exactly=True)):
            parts.append(part)
            length -= len(part)
            offset += len(part)
        return b"".join(parts)

    def read_into(self, target: memoryview, offset: int) -> int:
        part = self._some(offset, len(target), exactly=False)
        target[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=False, cancel_futures=True)
            self.pool = None

    def whole(self) -> PlainFile:
        """Return all of the file as a local one, for what cannot be read in ranges."""
        return self.root.copy(self)

    def _some(self, offset: int, length: int, exactly: bool) -> memoryview:
        """Return bytes from `offset` on: at most `length`, and at least one unless that is the end."""
        length = min(length, self.end - offset)
        if length <= 0:
            return memoryview(b"")
        held = self.root.held.find(self.file, offset)
        if not held:
            start, data = self._asked(offset, length, exactly)
            self.root.held.add(self.file, start, data)
            held = memoryview(data)[offset - start :]
        return held[:length]

    def _asked(self, offset: int, length: int, exactly: bool) -> tuple[int, bytes]:
        if self.ahead is not None and self.ahead[0] == offset:
            (_, coming), self.ahead = self.ahead, None
            data = coming.result()
            self.reached = offset + len(data)
        else:
            start, end = self._range(offset, length, exactly)
            data, offset, self.reached = self.root.read_range(self.file, start, end), start, end
        self._read_ahead()
        return offset, data

    def _range(self, offset: int, length: int, exactly: bool) -> tuple[int, int]:
        """Return the range to ask for, which holds the bytes from `offset` on."""
        if offset == self.reached:
            self.window = min(self.window * GROWTH, LARGEST)
            wanted = max(length if exactly else 0, self.window)
        else:
            self.window = FIRST
            if exactly:
                wanted = length
            elif offset == 0:
                wanted = SMALL if self.end <= SMALL else FIRST
            else:
                wanted = min(max(length, FIRST), LARGEST)
        if not exactly and self.stop < self.end:
            wanted = min(wanted, self.stop - offset) if offset < self.stop else length
        end = min(offset + wanted, self.end)
        if exactly and end == self.end and offset != self.reached:
            return max(0, min(offset, end - END)), end
        return offset, end

    def _read_ahead(self) -> None:
        """Ask for the next piece while this one is used, once it is clear that the file is read on and on."""
        last = min(self.end, self.stop)
        if self.window < LARGEST or self.reached >= last:
            return
        from concurrent.futures import ThreadPoolExecutor

        start, end = self.reached, min(self.reached + self.window, last)
        self.pool = self.pool or ThreadPoolExecutor(1, thread_name_prefix="rltracer-read-ahead")
        self.ahead = (start, self.pool.submit(self.root.read_range, self.file, start, end))
