"""Writing texts into the full text, in statements and transactions of a bounded size."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from ..index.database import transaction
from .jobs import TextShard
from .shard_texts import Text
from .tables import COLUMN, DIGESTS, SHARDS, TEXT_TABLE

STATEMENT_BYTES = 1 << 22  # of text that one statement takes
STATEMENT_ROWS = 2_000
COMMIT_BYTES = 1 << 25  # of text in one transaction
COMMIT_SECONDS = 5.0  # after which what has been read is kept, however slowly it comes
# FTS5 merges its segments as it goes, which is a quarter of the time of a large build and gains a search little; and
# where they have become many it merges all of them at once, for which one new record would wait for seconds. So it
# merges nothing by itself, short of the 2,000 segments that it can have, and a little after each small refresh.
# See https://www.sqlite.org/fts5.html#the_automerge_configuration_option.
MERGING = {"automerge": 0, "crisismerge": 1_900}
BULK_BYTES = 1 << 25  # of records, from which on nothing is merged
MERGED_PAGES = 500  # of 4,050 bytes, after fewer


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
        self._insert(TEXT_TABLE, f"rowid, {COLUMN}", [(text.row.id, text.text) for text in self.texts])
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


def put_off_merging(connection: sqlite3.Connection) -> None:
    """Keep FTS5 from merging segments by itself."""
    for name, value in MERGING.items():
        _tell(connection, name, value)


def merge_a_little(connection: sqlite3.Connection, size: int) -> None:
    """Merge some segments after so many bytes of records, unless they were many."""
    if size < BULK_BYTES:
        _tell(connection, "merge", MERGED_PAGES)


def _tell(connection: sqlite3.Connection, command: str, value: int) -> None:
    connection.execute(f"insert into {TEXT_TABLE} ({TEXT_TABLE}, rank) values (?, ?)", (command, value))
