"""The tables of the full text. They are made on demand: an index without them holds no text of a message.

The text itself is in none of them. FTS5 keeps which word stands at which place of which trajectory, and a digest
tells later whether a record that was rewritten still says the same.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from ..amounts import plural
from ..index.database import IndexFileError, open_index, transaction
from ..index.words import DIGESTS as DIGESTS
from .characters import TOKENIZER, VERSION

TEXT_TABLE = "trajectories_text"
SHARDS = "trajectories_text_shards"
EMPTY = int.from_bytes(blake2b(digest_size=8).digest(), "big", signed=True)  # the digest of no text
# What Datasette needs to know to offer `?_search=` on the table trajectories.
SEARCH_SETTINGS = {"fts_table": TEXT_TABLE, "fts_pk": "id"}

# The number of the rules by which a text becomes words is in the name of the column. Full text with another declaration
# was made by an earlier version, and would hide from the questions of this one what it holds.
COLUMN = f"body{VERSION}"
OF_OLD = "was made by an earlier version, and is not searched. Make it anew"
DECLARED = f"fts5({COLUMN}, content='', tokenize=\"{TOKENIZER}\")"

TABLES = f"""
-- The words of each trajectory; rowid is trajectories.id. Made by rltracer fts.
create virtual table {TEXT_TABLE} using {DECLARED};

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
    """Say whether an index has its full text, made as this version makes it."""
    declared = _declarations(connection)
    return len(declared) == 3 and declared[TEXT_TABLE].endswith(DECLARED)


def has_old_text(connection: sqlite3.Connection) -> bool:
    """Say whether an index has full text of an earlier version, which has to be made anew."""
    declared = _declarations(connection)
    return len(declared) == 3 and not declared[TEXT_TABLE].endswith(DECLARED)


def _declarations(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the SQL of those tables of the full text that there are, by their names."""
    found = connection.execute(
        "select name, sql from sqlite_master where type = 'table' and name in (?, ?, ?)", (TEXT_TABLE, DIGESTS, SHARDS)
    )
    return {str(name): str(sql) for name, sql in found}


def open_searchable(path: Path) -> sqlite3.Connection:
    """Open an index for reading. Raises IndexFileError, also where it has no full text."""
    connection = open_index(path)
    if not has_text(connection):
        is_old = has_old_text(connection)
        connection.close()
        if is_old:
            raise IndexFileError(f"The full text of {path} {OF_OLD} with: rltracer fts {quote(str(path))}")
        raise IndexFileError(f"The index {path} has no full text yet. Make it with: rltracer fts {quote(str(path))}")
    return connection


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


class Coverage(NamedTuple):
    """How many trajectories can be searched, how many there are, and what is with those that say nothing."""

    searchable: int
    total: int
    token_ids: int = 0  # without a tokenizer, so that there is no text
    empty: int = 0  # without any message, such as an episode that failed before an agent ran
    gone: int = 0  # whose files had vanished, or could not be read, before they were read for their words
    unopened: int = 0  # that can be searched, and not opened: their files have vanished since, or cannot be read

    @classmethod
    def of(cls, read: int, total: int, token_ids: int, empty: int, gone: int, unopened: int) -> Coverage:
        """Return what the row of `coverage_query` says."""
        # An index that an earlier version refreshed may hold digests of trajectories that are no longer there. To look
        # for each of them would be to read the whole table.
        return cls(min(read, total) - token_ids - empty, total, token_ids, empty, gone, unopened)

    @property
    def later(self) -> int:
        """How many came after the full text was brought up to date, or could not be read."""
        return max(self.total - self.searchable - self.token_ids - self.empty - self.gone, 0)

    @property
    def hides(self) -> bool:
        """Whether something is not found, or cannot be opened, that somebody may look for."""
        return bool(self.token_ids or self.gone or self.unopened)

    @property
    def said(self) -> str:
        """How many can be searched, and why not all of them: the same words in the terminal and on pages."""
        return f"{self.searchable:,} of {plural(self.total, 'trajectory')} can be searched{self._why}"

    @property
    def searched(self) -> str:
        """Among how many nothing was found, and why these are not all."""
        of = f"{self.searchable:,} of " if self.searchable < self.total else ""
        return f"{of}{plural(self.total, 'trajectory')}{self._replace(unopened=0)._why}"

    @property
    def _why(self) -> str:
        parts = [
            (self.token_ids, "no text: token ids without a tokenizer"),
            (self.empty, "no text: no message was recorded"),
            (self.gone, "a file that cannot be read any more, and was never read for its words"),
            (self.unopened, "a file that cannot be read any more: found by their words, and not to be opened"),
        ]
        return "".join(f"; {count:,} {'has' if count == 1 else 'have'} {reason}" for count, reason in parts if count)


def coverage_query(where: str = "1") -> str:
    """Return the query for the row that `Coverage.of` reads, of the trajectories that pass a condition."""
    chosen = f"select count(*) from trajectories where {where}"
    digest = f"(select digest from {DIGESTS} where trajectory_id = trajectories.id)"
    # A list of numbers, since a join would have SQLite read all trajectories for a Bloom filter.
    empty = f"{chosen} and trajectories.id in (select trajectory_id from {DIGESTS} where digest = {EMPTY})"
    lost = f"{chosen} and gone = 1 and shard_id in (select id from shards where state in ('gone', 'unread'))"
    return f"""
        select
            ({f"select count(*) from {DIGESTS}" if where == "1" else f"{chosen} and {digest} is not null"}) as read,
            ({chosen}) as total,
            ({empty} and content_kind = 'token_ids') as token_ids,
            ({empty} and content_kind <> 'token_ids') as empty,
            ({lost} and {digest} is null) as gone,
            ({lost} and {digest} <> {EMPTY}) as unopened
    """


def text_coverage(
    connection: sqlite3.Connection, where: str = "1", parameters: Mapping[str, object] | None = None
) -> Coverage:
    """Return how many of the trajectories that pass a condition can be searched, and what is with the others."""
    return Coverage.of(*connection.execute(coverage_query(where), parameters or {}).fetchone())


def text_of(connection: sqlite3.Connection) -> int:
    """Return how many trajectories have been read for their words, whether they have any or not."""
    return int(connection.execute(f"select count(*) from {DIGESTS}").fetchone()[0])
