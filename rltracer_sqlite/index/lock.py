"""One writer, and one watcher, at a time: lock files beside the index."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from .database import IndexFileError

POLL_SECONDS = 0.05
NAMELESS_SECONDS = 0.5  # that whoever has just got the lock may take to say who it is
LOCAL = "Put the index on a local disk: SQLite needs locks of files as well."
WRITING, WATCHING = "-lock", "-watch"  # endings of the files: a watcher writes, and between times leaves that to others


class WriterLock:
    """The right to write to an index. `with WriterLock(path, "indexing", wait=30):`

    Raises IndexFileError, naming who holds it, when the lock is not free within `wait` seconds, and where the file
    system has no locks. Where Python has none, as on Windows, SQLite's own locking is all there is. `right` is
    WATCHING for the right to be its only watcher.
    """

    def __init__(self, database: Path, purpose: str, wait: float = 0.0, right: str = WRITING) -> None:
        self.file = Path(f"{database}{right}")
        self.database, self.purpose, self.wait = database, purpose, wait
        self.descriptor: int | None = None

    def __enter__(self) -> WriterLock:
        try:
            import fcntl
        except ImportError:
            return self
        begun = time.monotonic()
        while True:
            try:
                # In a folder that others may write to, a link of this name could lead to a file of ours.
                descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            except OSError as error:
                raise IndexFileError(f"{self.database} cannot be written: {error.strerror}.") from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if not isinstance(error, BlockingIOError):  # as on Lustre that is mounted without locks
                    self.file.unlink(missing_ok=True)
                    os.close(descriptor)
                    raise IndexFileError(f"{self.database} cannot be locked: {error.strerror}. {LOCAL}") from None
                holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
                os.close(descriptor)
                if time.monotonic() >= begun + (self.wait if holder else max(self.wait, NAMELESS_SECONDS)):
                    raise IndexFileError(f"{self.database} is in use: {holder or 'another process'}.") from None
                time.sleep(POLL_SECONDS)
                continue
            if self._is_current(descriptor):
                self.descriptor = descriptor
                with suppress(OSError):  # who holds it is a courtesy, and a full disk has no room for that
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, f"process {os.getpid()} is {self.purpose}".encode(errors="replace"), 0)
                return self
            os.close(descriptor)  # whoever held it has removed this file: lock the one that is there now

    def _is_current(self, descriptor: int) -> bool:
        try:
            there = os.stat(self.file)
        except FileNotFoundError:
            return False
        mine = os.fstat(descriptor)
        return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)

    def __exit__(self, *error: object) -> None:
        if self.descriptor is not None:
            self.file.unlink(missing_ok=True)
            os.close(self.descriptor)
            self.descriptor = None
