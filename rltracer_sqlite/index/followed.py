"""A run that is followed: what it is read as once there is something, and which of its files are worth another try."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from ..sources.base import LocatorError, Source, SourceError
from ..sources.places import Root, file_status, walk
from .plan import Job

MOST_LOOKS_MISSED = 64


@dataclass
class Tried:
    """A shard that stays as it is and had to be read again and again: every time half as soon."""

    size: int
    mtime_ns: int
    missed: int = 0
    to_miss: int = 0


@dataclass
class Followed:
    """A run that is followed. `find_source` is asked until it finds something to read at `root`.

    `trouble` says why the last look could not read it, "" where it could.
    """

    root: Root
    find_source: Callable[[], Source]
    steps: Callable[[int | None], bool] = lambda step: True
    name: str | None = None
    rule: tuple[str, float] | None = None
    source: Source | None = None
    run_id: int | None = None
    trouble: str = ""
    naming: str | None = None  # what is to be told of the name that it was given
    unknown: list[tuple[str, int, int]] | None = None  # the files when none of them was recognised
    tried: dict[str, Tried] = field(default_factory=dict)

    def recognised(self) -> Source:
        """Return the source of the run. Its files are only looked into again when one of them has changed.

        Raises SourceError where nothing is recognised.
        """
        files = _listing(self.root)
        if files == self.unknown:
            raise SourceError(self.trouble)
        self.unknown = files
        return self.find_source()

    def is_due(self, job: Job) -> bool:
        """Say whether a shard is to be read now: one that was read and has not changed since could not be read."""
        last = self.tried.get(job.shard.path)
        if last is None or (last.size, last.mtime_ns) != (job.size, job.mtime_ns):
            self.tried[job.shard.path] = Tried(job.size, job.mtime_ns)
            return True
        if last.missed < last.to_miss:
            last.missed += 1
            return False
        last.missed, last.to_miss = 0, min(2 * last.to_miss + 1, MOST_LOOKS_MISSED)
        return True


def _listing(root: Root) -> list[tuple[str, int, int]]:
    if root.is_file():
        return [("", *file_status(root)(root.name))]
    status, found = file_status(root), []
    for listed in walk(root):
        with suppress(OSError, LocatorError):
            found.append((listed.path, *status(listed.path)))
    return found
