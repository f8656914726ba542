"""One shard being read into the index, stretch by stretch, from where it was left to its end."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from ..sources.base import Entry, KnownOther, Misfit, NotRollouts, Position, Problem, Scanned, SourceError, Update
from ..sources.files import open_shard
from ..sources.places import Root
from .database import transaction
from .derived import StepKey
from .gone import flag_unread
from .plan import HASHED_BYTES, TO_READ_AGAIN, Fingerprints, Job, file_now, fingerprints, read_again
from .rows import RunWriter
from .stale import drop_stale, forget_findings
from .statistics import note_read_steps, refresh_steps


class Reading:
    """One shard being read; each stretch between two positions is one transaction.

    A shard that is read again has no hashes until it has been read to its end, so that an interrupted reading begins
    anew and finds the rows to drop.
    """

    def __init__(self, connection: sqlite3.Connection, root: Root, writer: RunWriter, job: Job) -> None:
        self.connection, self.root, self.writer, self.job = connection, root, writer, job
        self.entries: list[Entry] = []
        self.updates: list[Update] = []
        self.problems: list[Problem] = []
        self.held: set[int] = set()
        self.moved_to: set[int] = set()  # shards that are to be read again, as rows of this one have moved there
        self.reached, self.state, self.note, self.removed = job.start, "complete", "", 0
        self.hashes: Fingerprints | None = None  # those at the position reached, until what came before it is written
        self.misfit, self.is_known_other = "", False
        self.is_due_again = False  # it has grown, and since that was found rows of another shard have moved to it

    def commits(self, scanned: Iterable[Scanned]) -> Iterator[int]:
        """Write what is scanned, yielding the number of new bytes after each commit."""
        with transaction(self.connection):
            self.is_due_again = not self.job.again and _has_no_hashes(self.connection, self.job.shard_id)
            self.job.shard_id = _shard_row(self.connection, self.writer.run_id, self.job)
            if self.job.again:
                forget_findings(self.connection, self.job.shard_id)
                self.connection.execute(f"update shards set {TO_READ_AGAIN} where id = ?", (self.job.shard_id,))
            else:
                # What a record that was not complete said is said again, if it is still so.
                behind = self.job.shard_id, self.job.start.offset
                self.connection.execute("delete from problems where shard_id = ? and byte_offset >= ?", behind)
            if self.job.is_resumed:
                # Counted in one, so that they are what an undisturbed reading would have counted.
                refresh_steps(self.connection, self.writer.run_id, self._steps())
        try:
            # Opened before the scan and held: a file that is put in the place of this one has other fingerprints.
            with open_shard(self.root, self.job.shard.path) as reader:
                beginning = reader.pread(HASHED_BYTES, 0)
                for found in scanned:
                    if self.hashes:
                        yield self._commit()
                    self._take(found)
                    if isinstance(found, Position):
                        self.hashes, self.reached = fingerprints(reader, found.offset, beginning), found
        except KnownOther as error:
            self.state, self.note, self.is_known_other = "aside", str(error), True
        except NotRollouts as error:
            self.state, self.note = "aside", f"no rollouts here: {error}"
        except (SourceError, OSError) as error:
            self.state, self.note = "unread", str(error)
        self._finish()
        yield self.read_bytes()

    def _take(self, found: Scanned) -> None:
        if isinstance(found, Entry):
            self.entries.append(found)
        elif isinstance(found, Update):
            self.updates.append(found)
        elif isinstance(found, Problem):
            self.problems.append(found)
            if isinstance(found, Misfit):
                self.misfit = found.reason

    def _steps(self) -> list[StepKey]:
        query = "select distinct step, split from trajectories where shard_id = ?"
        return self.connection.execute(query, (self.job.shard_id,)).fetchall()

    def _commit(self) -> int:
        with transaction(self.connection):
            self._write(is_last=False)
        return self.read_bytes()

    def _write(self, is_last: bool) -> None:
        """Write what came before the position that was reached."""
        assert self.hashes
        seen = self.held if self.job.again else None
        batch = self.entries, self.updates, self.problems
        self.held |= self.writer.write(self.job.shard_id, self.job.shard, *batch, seen, is_last)
        hashes = (None, None) if self.is_due_again or (self.job.again and not is_last) else self.hashes
        _note_progress(self.connection, self.job, self.reached, self._new_entries() + len(self.updates), hashes)
        self.hashes = None
        self.entries, self.updates, self.problems = [], [], []

    def _new_entries(self) -> int:
        """Return how many entries no earlier reading has told of: what is new may belong to a record before it."""
        start = self.job.start.offset
        return sum(entry.byte_offset >= start for entry in self.entries) if start else len(self.entries)

    def read_bytes(self) -> int:
        """Return how many new bytes were read so far."""
        return max(self.reached.offset - self.job.start.offset, 0)

    def _finish(self) -> None:
        if self.reached.waiting:
            self.state = "waiting"
        if self._was_replaced():
            self.state, self.note = "unread", "rewritten while it was read; it is read again"
        with transaction(self.connection):
            if self.hashes:
                self._write(is_last=True)
            if self.state == "unread":
                # What was read before the fault is kept; the next refresh reads the shard from its start.
                batch = self.entries, self.updates, self.problems
                self.held |= self.writer.write(self.job.shard_id, self.job.shard, *batch, is_last=True)
                if self.job.again:
                    self.moved_to = flag_unread(self.connection, self.job.shard_id, self.held)
            elif self.job.again:
                dropped = drop_stale(self.connection, self.writer.run_id, self.job.shard_id, self.held)
                self.removed, steps, self.moved_to = dropped
                self.writer.touched_steps |= steps
            _close_shard(self.connection, self.job, self.state, self.note, self.is_known_other)
            if self.is_due_again:
                read_again(self.connection, [self.job.shard_id])
            self.writer.count_steps()
            shard = self.job.shard
            note_read_steps(self.connection, self.writer.run_id, (shard.step, shard.split))

    def _was_replaced(self) -> bool:
        """Say whether another file has taken the place of the one that was read, or it is shorter than what was."""
        now = file_now(self.root, self.job.shard)
        if self.job.file is None or now is None:
            return False  # a chunk that was sealed meanwhile says the same; a file that is gone is found to be so
        is_shorter = self.job.shard.file == self.job.shard.path and now.size < self.reached.offset
        return is_shorter or now.identity != self.job.file.identity


def _shard_row(connection: sqlite3.Connection, run_id: int, job: Job) -> int:
    shard = job.shard
    connection.execute(
        """
        insert into shards (run_id, path, file, layout, producer, step, split, size, mtime_ns, state)
        values (?, ?, ?, ?, ?, ?, ?, 0, 0, 'reading')
        on conflict (run_id, path) do update set file = excluded.file, state = 'reading'
        """,
        (run_id, shard.path, shard.file, shard.layout, shard.producer, shard.step, shard.split),
    )
    row = connection.execute("select id from shards where run_id = ? and path = ?", (run_id, shard.path)).fetchone()
    return int(row[0])


def _has_no_hashes(connection: sqlite3.Connection, shard_id: int) -> bool:
    """Say whether a known shard is marked as one to be read from its start."""
    row = connection.execute("select head_hash is null from shards where id = ?", (shard_id,)).fetchone()
    return row is not None and bool(row[0])


def _note_progress(
    connection: sqlite3.Connection, job: Job, reached: Position, records: int, hashes: Fingerprints
) -> None:
    connection.execute(
        """
        update shards set indexed_bytes = ?, lines = ?, records = records + ?, head_hash = ?, tail_hash = ?
        where id = ?
        """,
        (reached.offset, reached.line, records, *hashes, job.shard_id),
    )


def _close_shard(connection: sqlite3.Connection, job: Job, state: str, note: str, is_known_other: bool) -> None:
    # Why a file is aside is a row in any case; it counts as a problem where the file should have been read.
    connection.execute("delete from problems where shard_id = ? and line is null", (job.shard_id,))
    if note:
        connection.execute("insert into problems (shard_id, reason) values (?, ?)", (job.shard_id, note[:500]))
    # Size and time are those from before reading: what came in between is found by the next refresh. What is aside is
    # read from its start when it has changed, also where it was the beginning of a line before.
    connection.execute(
        """
        update shards set size = ?1, mtime_ns = ?2, state = ?3, head_hash = iif(?3 = 'aside', null, head_hash),
            tail_hash = iif(?3 = 'aside', null, tail_hash),
            problems = iif(?4, 0, (select count(*) from problems where shard_id = shards.id))
        where id = ?5
        """,
        (job.size, job.mtime_ns, state, is_known_other, job.shard_id),
    )
