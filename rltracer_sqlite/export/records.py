"""The records of a selection, read in the order of their files, and whether these are still what was indexed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from typing import Any, NamedTuple, TypeVar

from ..index.plan import fingerprints
from ..sources.absent import absent
from ..sources.base import PACKED, Locator, LocatorError, Source
from ..sources.files import open_shard, status_inside
from ..sources.places import Root
from ..sources.remote import RemoteRoot
from .runs import OpenRun

Read = TypeVar("Read")
CHANGED = "{path} has changed since it was indexed. Index the run again, then export."

# The order is that of the files, whatever the ids are.
FILE_ORDER = "t.step is null, t.step, s.path, t.byte_offset, ifnull(t.item, -1)"
LOCATED = """
t.id, t.uid, s.path, s.layout, t.byte_offset, t.byte_length, t.item, t.line,
s.size, s.mtime_ns, s.indexed_bytes, s.head_hash, s.tail_hash
"""


class Located(NamedTuple):
    """A trajectory with the place of its record, and what its file was like when it was indexed."""

    id: int
    uid: str
    path: str
    layout: str
    byte_offset: int
    byte_length: int
    item: int | None
    line: int | None
    size: int
    mtime_ns: int
    indexed_bytes: int
    head_hash: str | None
    tail_hash: str | None

    def locator(self) -> Locator:
        """Return the place as a source takes it."""
        return Locator(self.uid, self.path, self.layout, self.byte_offset, self.byte_length, self.item, self.line)


Placed = tuple[Located, Any]  # what the selection says besides the place goes along untouched


def read_rows(
    run: OpenRun, rows: Iterable[Placed], read: Callable[[Root, Iterable[Locator]], Iterator[Read]]
) -> Iterator[tuple[Placed, Read]]:
    """Yield each row with what `read` makes of its record; the rows come in the order of their files.

    A file is checked before its first record is read, and again after its last one. Raises LocatorError.
    """
    root = run.root()
    for _, of_one_file in groupby(rows, key=lambda row: row[0].path):
        group = iter(of_one_file)
        first = next(group)
        seen = check_unchanged(root, first[0])
        yield from _in_step(root, chain([first], group), read)
        if _status(root, first[0].path) != seen:
            check_unchanged(root, first[0])


def _in_step(
    root: Root, rows: Iterable[Placed], read: Callable[[Root, Iterable[Locator]], Iterator[Read]]
) -> Iterator[tuple[Placed, Read]]:
    # `read` takes one place for each record that it gives, so the row of a record is the oldest one taken.
    taken: deque[Placed] = deque()

    def places() -> Iterator[Locator]:
        for row in rows:
            taken.append(row)
            yield row[0].locator()

    for record in read(root, places()):
        yield taken.popleft(), record


def check_unchanged(root: Root, row: Located) -> tuple[int, int]:
    """Return size and time of a shard. Raises LocatorError where it is not the one that was indexed.

    A file that has grown since is the same one when it still begins as it did; a run may be going on.
    """
    size, mtime_ns = _status(root, row.path)
    if (size, mtime_ns) == (row.size, row.mtime_ns):
        return size, mtime_ns
    if size != row.size:
        with open_shard(root, row.path) as reader:
            if row.head_hash is not None and fingerprints(reader, row.indexed_bytes) == (row.head_hash, row.tail_hash):
                return size, mtime_ns
    raise LocatorError(CHANGED.format(path=row.path))


def _status(root: Root, path: str) -> tuple[int, int]:
    for name in (path, path + PACKED):
        try:
            if isinstance(root, RemoteRoot):
                return root.status(name, fresh=True)
            status = status_inside(root, name)
        except FileNotFoundError:
            continue
        return status.st_size, status.st_mtime_ns
    raise absent(root, path)


def conversations(source: Source) -> Callable[[Root, Iterable[Locator]], Iterator[Any]]:
    """Return the source's way to read many conversations at once, or else its `load` for one after the other."""
    quick = getattr(source, "conversations", None)
    return quick or (lambda root, locators: (source.load(root, [locator]) for locator in locators))


def records(source: Source) -> Callable[[Root, Iterable[Locator]], Iterator[Any]]:
    """Return the source's way to read many records at once, or else its `load` for one after the other."""
    quick = getattr(source, "records", None)
    return quick or (lambda root, locators: (source.load(root, [locator]).record for locator in locators))
