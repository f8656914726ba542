"""One record for a page: from which folders it may come, how large it may be, and why it cannot be read."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from rltracer_sqlite.index.queries import trajectory_row
from rltracer_sqlite.loading import load_trajectory
from rltracer_sqlite.roots import RootNotAllowed, Roots
from rltracer_sqlite.sources.base import LocatorError, SourceError
from rltracer_sqlite.trajectory import Trajectory

from . import compat
from .access import PLUGIN
from .bounds import gates

if TYPE_CHECKING:
    from datasette.app import Datasette

LARGEST_RECORD = 64 << 20  # bytes of a record that a page decodes
LARGE_RECORD = 8 << 20  # bytes from which records are decoded one after the other
LONGEST_REASON = 2_000  # characters; it can name a file
MOST_REMARKS = 5
UNREADABLE = (SourceError, OSError, RecursionError)  # what reading a record may raise


class RecordTooLarge(LocatorError):
    """A record that is not decoded for a page."""


@asynccontextmanager
async def room_for(datasette: Datasette, size: object) -> AsyncIterator[None]:
    """Be where a record of this size may be decoded: large ones one after the other. Raises Busy."""
    if not isinstance(size, int) or not LARGE_RECORD <= size <= LARGEST_RECORD:
        yield
        return
    async with gates(datasette).records.passed():
        yield


def roots_of(datasette: Datasette, database: str) -> Roots:
    """Return the folders that the records of an index may lie in. Reads a file, so it is for a thread."""
    config = compat.plugin_config(datasette, PLUGIN, database)
    return Roots.for_database(datasette.databases[database].path, config.get("roots"))


def load_for_page(connection: sqlite3.Connection, identity: int, roots: Roots) -> Trajectory:
    """Return a trajectory as `load_trajectory` does. Raises RecordTooLarge for what no page should wait for."""
    row = trajectory_row(connection, identity)
    size = row["byte_length"] if row is not None else 0
    if isinstance(size, int) and size > LARGEST_RECORD:
        raise RecordTooLarge(
            f"The record has {size:,} bytes; pages show records of at most {LARGEST_RECORD:,}. In a terminal: "
            f"rltracer inspect --trajectory {identity}"
        )
    return load_trajectory(connection, identity, roots)


def explained(error: Exception) -> tuple[str, int]:
    """Return why a record cannot be read, in one sentence, and the status that fits."""
    said = str(error)[:LONGEST_REASON]
    if isinstance(error, RootNotAllowed):
        return said, 403
    if isinstance(error, RecordTooLarge):
        return said, 413
    if isinstance(error, RecursionError):
        return "The record is nested too deeply to be decoded.", 422
    if isinstance(error, OSError):
        return f"The record cannot be read: {error.strerror or error}.", 404
    # A shard that is not there was looked for, and not found, just before.
    return said, 404 if isinstance(error.__context__, FileNotFoundError) else 409


def remarks_of(trajectory: Trajectory) -> list[str]:
    """Return what is remarked on how a trajectory was read, such as why it has no text."""
    return [str(remark) for remark in (trajectory.metadata.get("remarks") or ())[:MOST_REMARKS]]
