"""Writing texts into the full text, in transactions of a bounded size."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .jobs import TextShard
from .read import Text
from .tables import DIGESTS, SHARDS, TEXT_TABLE

STATEMENT_BYTES = 1 << 23  # of text that one statement takes
STATEMENT_ROWS = 2_000
COMMIT_BYTES = 1 << 25  # of text in one transaction
BULK_BYTES = 1 << 25  # of records from which on nothing is merged while they are read
# FTS5 merges its segments as it goes, which is a quarter of the time of a large build and gains a search little.
# See https://www.sqlite.org/fts5.html#the_automerge_configuration_option; these are its defaults, and ours.
DEFAULT_MERGING = {"automerge": 4, "crisismerge": 16}
BULK_MERGING = {"automerge": 0, "crisismerge": 500}


class TextWriter:
    """Writes texts in transactions of about COMMIT_BYTES."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.held = connection, 0

    def add(self, texts: Sequence[Text]) -> None:
        """Add texts that are not in it yet."""
        batch: list[Text] = []
        size = 0
        for text in texts:
            batch.append(text)
            size += text.size
            if len(batch) >= STATEMENT_ROWS or size >= STATEMENT_BYTES:
                self._write(batch)
                batch, size = [], 0
        if batch:
            self._write(batch)

    def _write(self, batch: list[Text]) -> None:
        # Many rows in one statement: FTS5 begins a segment with each, and the thread that decodes gets on meanwhile.
        self.connection.execute(
            f"insert into {TEXT_TABLE} (rowid, body) values {', '.join(['(?, ?)'] * len(batch))}",
            [value for text in batch for value in (text.row.id, text.text)],
        )
        self.connection.executemany(
            f"insert into {DIGESTS} (trajectory_id, digest) values (?, ?)",
            [(text.row.id, text.digest) for text in batch],
        )
        self.held += sum(text.size for text in batch)
        if self.held >= COMMIT_BYTES:
            self.connection.execute("commit")
            self.connection.execute("begin immediate")
            self.held = 0

    def close_shard(self, shard: TextShard) -> None:
        """Note that all texts of a shard have been read."""
        self.connection.execute(
            f"""
            insert or replace into {SHARDS} (shard_id, size, mtime_ns, indexed_bytes, head_hash, tail_hash)
            values (?, ?, ?, ?, ?, ?)
            """,
            (shard.id, *shard.state),
        )


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[TextWriter]:
    """Open a transaction for texts; an error rolls back what was not committed yet."""
    connection.execute("begin immediate")
    try:
        yield TextWriter(connection)
    except BaseException:
        connection.execute("rollback")
        raise
    connection.execute("commit")


@contextmanager
def bulk_writing(connection: sqlite3.Connection, size: int) -> Iterator[None]:
    """Put off the merging of segments while many texts are written."""
    if size < BULK_BYTES:
        _set_merging(connection, DEFAULT_MERGING)  # a build that was interrupted has left the other one
        yield
        return
    _set_merging(connection, BULK_MERGING)
    try:
        yield
    finally:
        _set_merging(connection, DEFAULT_MERGING)


def _set_merging(connection: sqlite3.Connection, options: dict[str, int]) -> None:
    for name, value in options.items():
        connection.execute(f"insert into {TEXT_TABLE} ({TEXT_TABLE}, rank) values (?, ?)", (name, value))
