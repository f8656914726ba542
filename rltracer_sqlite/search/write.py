"""Writing texts into the full text, in statements and transactions of a bounded size."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from ..index.database import transaction
from .jobs import TextShard
from .read import Text
from .tables import DIGESTS, SHARDS, TEXT_TABLE

STATEMENT_BYTES = 1 << 22  # of text that one statement takes
STATEMENT_ROWS = 2_000
COMMIT_BYTES = 1 << 25  # of text in one transaction
COMMIT_SECONDS = 5.0  # after which what has been read is kept, however slowly it comes
BULK_BYTES = 1 << 25  # of records from which on nothing is merged while they are read
# FTS5 merges its segments as it goes, which is a quarter of the time of a large build and gains a search little.
# See https://www.sqlite.org/fts5.html#the_automerge_configuration_option; these are its defaults, and ours.
DEFAULT_MERGING = {"automerge": 4, "crisismerge": 16}
BULK_MERGING = {"automerge": 0, "crisismerge": 500}


class TextWriter:
    """Writes texts in statements of about STATEMENT_BYTES and transactions of about COMMIT_BYTES."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.uncommitted = connection, 0
        self.texts: list[Text] = []
        self.size = 0  # of them
        self.closed: list[TextShard] = []
        self.committed_at = time.monotonic()

    def add(self, texts: Iterable[Text]) -> None:
        """Add texts that are not in it yet."""
        for text in texts:
            self.texts.append(text)
            self.size += text.size
            if len(self.texts) >= STATEMENT_ROWS or self.size >= STATEMENT_BYTES:
                self.write()
        if time.monotonic() - self.committed_at >= COMMIT_SECONDS:
            self.write()

    def close_shard(self, shard: TextShard) -> None:
        """Note that all texts of a shard have been read and added."""
        self.closed.append(shard)

    def write(self) -> None:
        """Write what has been added, and commit it where it is much or has taken long."""
        if self.texts:
            self._write_texts()
        self.connection.executemany(
            f"""
            insert or replace into {SHARDS} (shard_id, size, mtime_ns, indexed_bytes, head_hash, tail_hash)
            values (?, ?, ?, ?, ?, ?)
            """,
            [(shard.id, *shard.state) for shard in self.closed],
        )
        self.uncommitted += self.size
        self.texts, self.size, self.closed = [], 0, []
        now = time.monotonic()
        if self.uncommitted >= COMMIT_BYTES or now - self.committed_at >= COMMIT_SECONDS:
            self.connection.execute("commit")
            self.connection.execute("begin immediate")
            self.uncommitted, self.committed_at = 0, now

    def _write_texts(self) -> None:
        # FTS5 begins a segment with each statement, and with each row whose id is below that of the one before.
        self.texts.sort(key=lambda text: text.row.id)
        self._insert(TEXT_TABLE, "rowid, body", [(text.row.id, text.text) for text in self.texts])
        self._insert(DIGESTS, "trajectory_id, digest", [(text.row.id, text.digest) for text in self.texts])

    def _insert(self, table: str, columns: str, rows: Sequence[tuple[int, object]]) -> None:
        """Insert rows by one statement: while SQLite takes them in, the thread that reads has the interpreter.

        There is one for each power of two of rows, since Python keeps many statements, with the values they had.
        """
        count = 1 << (len(rows) - 1).bit_length()
        values = [value for row in rows for value in row]
        self.connection.execute(
            f"""
            insert into {table} ({columns})
            select column1, column2 from (values {", ".join(["(?, ?)"] * count)}) where column1 is not null
            """,
            values + [None] * (2 * count - len(values)),
        )


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[TextWriter]:
    """Open a transaction for texts; an error rolls back what was not committed yet."""
    with transaction(connection):
        writer = TextWriter(connection)
        yield writer
        writer.write()


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
