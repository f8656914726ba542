"""The tables of the full text. They are made on demand: an index without them holds no text of a message.

The text itself is in none of them. FTS5 keeps which word stands at which place of which trajectory, and a digest
tells later whether a record that was rewritten still says the same.
"""

from __future__ import annotations

import sqlite3

from ..index.database import transaction
from .query import TOKENIZER

TEXT_TABLE = "trajectories_text"
DIGESTS = "trajectories_text_digests"
SHARDS = "trajectories_text_shards"
# What Datasette needs to know to offer `?_search=` on the table trajectories.
SEARCH_SETTINGS = {"fts_table": TEXT_TABLE, "fts_pk": "id"}

TABLES = f"""
-- The words of each trajectory; rowid is trajectories.id. Made by rltracer fts.
create virtual table {TEXT_TABLE} using fts5(body, content='', tokenize='{TOKENIZER}');

-- What the text of each trajectory was when its words were read.
create table {DIGESTS} (
    trajectory_id integer primary key, -- the trajectory
    digest integer not null            -- 64 bits of BLAKE2b of its text
) strict;

-- How far each file was read for its words, and what it looked like then.
create table {SHARDS} (
    shard_id integer primary key,      -- the file
    size integer not null,             -- bytes on disk
    mtime_ns integer not null,         -- modification time, nanoseconds
    indexed_bytes integer not null,    -- bytes read, uncompressed
    head_hash text,                    -- hash of the first 4 KiB of what was read
    tail_hash text                     -- hash of the last 4 KiB of what was read
) strict;
"""


def has_text(connection: sqlite3.Connection) -> bool:
    """Say whether an index has its full text."""
    found = connection.execute(
        """
        select count(*) from sqlite_master where type = 'table' and name in (?, ?, ?)
        """,
        (TEXT_TABLE, DIGESTS, SHARDS),
    ).fetchone()
    return bool(found[0] == 3)


def make_text_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of the full text anew, and empty."""
    with transaction(connection):
        drop_tables(connection)
        for statement in TABLES.split(";\n"):
            if statement.strip():
                connection.execute(statement)


def remove_text(connection: sqlite3.Connection) -> None:
    """Remove the full text from an index."""
    with transaction(connection):
        drop_tables(connection)


def forget_run(connection: sqlite3.Connection, run_id: int) -> bool:
    """Take a run out of the full text, inside the caller's transaction; say whether words of it stay.

    They stay, and are found by nobody, where other runs are searchable too: without the texts, SQLite cannot tell which
    words are the run's. They go when the full text is built anew.
    """
    if not has_text(connection):
        return False
    before = connection.total_changes
    connection.execute(
        f"delete from {DIGESTS} where trajectory_id in (select id from trajectories where run_id = ?)", (run_id,)
    )
    connection.execute(f"delete from {SHARDS} where shard_id in (select id from shards where run_id = ?)", (run_id,))
    if connection.execute(f"select exists (select 1 from {DIGESTS})").fetchone()[0]:
        return connection.total_changes > before
    connection.execute(f"insert into {TEXT_TABLE} ({TEXT_TABLE}) values ('delete-all')")
    return False


def drop_tables(connection: sqlite3.Connection) -> None:
    for table in (TEXT_TABLE, DIGESTS, SHARDS):
        connection.execute(f"drop table if exists {table}")


def text_coverage(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return how many trajectories can be searched, and how many there are."""
    row = connection.execute(
        f"""
        select (select count(*) from {DIGESTS}), (select count(*) from trajectories)
        """
    ).fetchone()
    return int(row[0]), int(row[1])
