"""Indexes for people's filters that a new database gets once it is filled: that costs half of keeping them up to date.

Nothing that is written needs them. An indexing that is killed leaves a database without them, in which a filter reads
the whole table; the next one makes what is missing.
"""

from __future__ import annotations

import sqlite3

from .database import transaction
from .migrations import statements
from .schema import INDEXES

MANY = 128 << 20  # new bytes from which on it is worth it
NAMES = {
    f"trajectories_{name}"
    for name in ("env", "split", "success", "stop", "error", "episode", "group_pass_rate", "tools")
}


def leave_for_later(connection: sqlite3.Connection, new_bytes: int) -> None:
    """Drop these indexes where a database is empty and is to get much."""
    if new_bytes < MANY or connection.execute("select exists (select 1 from trajectories)").fetchone()[0]:
        return
    with transaction(connection):
        for name in sorted(NAMES):
            connection.execute(f"drop index if exists {name}")


def make_missing(connection: sqlite3.Connection) -> None:
    """Make those of these indexes that are not there."""
    there = {name for (name,) in connection.execute("select name from sqlite_master where type = 'index'")}
    if not NAMES - there:
        return
    with transaction(connection):
        for statement in statements(INDEXES):
            if statement.removeprefix("create index ").split()[0] in NAMES - there:
                connection.execute(statement)
