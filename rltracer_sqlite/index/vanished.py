"""Runs of an index all of whose files have vanished: their rows stay, flagged as gone until the files are back.

A folder may be away for a while, as one of a file system that is not mounted. So nothing is removed, and a file counts
as vanished only where the system says that it is not there, not where it cannot be asked.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ..sources.base import PACKED, SourceError
from ..sources.places import FileStatus, Root, file_status, real_place
from .gone import is_listed, mark_gone
from .queries import runs
from .states import NOT_OPENED


class Vanished(NamedTuple):
    """A run whose files have all vanished."""

    run_id: int
    name: str
    trajectories: int
    is_flagged: bool


def find_vanished(connection: sqlite3.Connection, root: Root) -> Vanished | None:
    """Return the run that is indexed from a place, where it has files and none of them is there any more."""
    run = next((known for known in runs(connection) if known.root == str(real_place(root))), None)
    if run is None:
        return None
    try:
        status = file_status(root)
    except (SourceError, OSError):
        return None
    # What was never read is no part of what the index knows of a run.
    listed = f"select path from shards where run_id = ? and not {NOT_OPENED} order by id"
    paths = [path for (path,) in connection.execute(listed, (run.id,))]
    if not paths or not all(_is_missing(status, path) for path in paths):
        return None
    count = connection.execute("select count(*) from trajectories where run_id = ?", (run.id,)).fetchone()[0]
    return Vanished(run.id, run.name, count, is_listed(connection, run.id, []))


def flag_vanished(connection: sqlite3.Connection, run: Vanished) -> None:
    """Flag all files of a run, and their rows, as gone."""
    mark_gone(connection, run.run_id, set())


def is_missing(root: Root, path: str) -> bool:
    """Say whether a shard of a run is not there any more; False where that cannot be asked."""
    try:
        return _is_missing(file_status(root), path)
    except (SourceError, OSError):
        return False


def _is_missing(status: FileStatus, path: str) -> bool:
    """Say whether there is no file of a shard, whichever way it is packed."""
    return all(_is_not_there(status, file) for file in (path, path + PACKED))


def _is_not_there(status: FileStatus, file: str) -> bool:
    try:
        status(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (SourceError, OSError, ValueError):  # such as a path with a NUL, which no indexer has written
        pass
    return False
