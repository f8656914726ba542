"""Bringing an index up to date with a run: what is new is read, what is unchanged costs a stat."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..sources.base import Shard, Source
from ..sources.places import Root
from .database import begin_writing, transaction
from .gone import Marked, mark_gone
from .late import leave_for_later, make_missing
from .moved_rows import Move
from .plan import Job, discover_steps, find_jobs, forget_left_steps, refuse_double_counting
from .reading import Reading
from .rows import RunWriter
from .scanning import Scan, scanning
from .statistics import note_read_steps, refresh_steps, utc_now
from .unopened import listed_shards, note_unopened

MOST_NAMED = 5  # of the files that are left aside for one reason
Progress = Callable[[int, int], None]  # bytes read so far, never fewer than before, and bytes to read


class Others(NamedTuple):
    """Files that are left aside for one reason: how many, and the first of them by their names."""

    files: int
    first: list[str]


@dataclass
class Refreshed:
    """What one refresh did."""

    run_id: int
    read_bytes: int = 0
    read_shards: int = 0
    removed: int = 0  # rows whose record a rewritten file no longer holds
    waiting: list[str] = field(default_factory=list)  # files whose last line is not finished
    aside: dict[str, str] = field(default_factory=dict)  # files that should have been read, and why they were not
    unread: dict[str, str] = field(default_factory=dict)  # those of them that this refresh could not read, and why
    others: dict[str, Others] = field(default_factory=dict)  # why files are left aside without being a problem
    notes: list[str] = field(default_factory=list)  # what the source left out on purpose
    gone: list[str] = field(default_factory=list)
    moved: Counter[Move] = field(default_factory=Counter)  # rows that are read from another file, as theirs is gone
    misfits: dict[str, str] = field(default_factory=dict)  # shards that the tokenizer does not fit, and how that shows
    naming: str | None = None  # what is to be told of the run's name
    refused_rule: str | None = None  # why the run did not take the success rule that was asked for


def refresh_run(
    connection: sqlite3.Connection,
    source: Source,
    root: Root,
    run_id: int,
    steps: Callable[[int | None], bool] = lambda step: True,
    discover_only: bool = False,
    progress: Progress | None = None,
    processes: int | None = 1,
    executor: str | None = None,
) -> Refreshed:
    """Read what is new at `root` into the index; `steps` chooses by a shard's step (None: not known from its place).

    `processes` and `executor` say who scans, as `scanning` has them; what is written does not depend on it.
    """
    done = Refreshed(run_id)
    shards, marked = _discover(connection, source, root, done)
    if discover_only:
        return done
    jobs = find_jobs(connection, run_id, root, [shard for shard in shards if steps(shard.step)])
    if not jobs and not marked.copies:
        make_missing(connection)
        return done
    begin_writing(connection)
    leave_for_later(connection, sum(job.new_bytes for job in jobs))
    unread = connection.execute("select id from shards where run_id = ? and state = 'unread'", (run_id,))
    writer = RunWriter(connection, run_id, marked.back.union(shard_id for (shard_id,) in unread))
    readings = _Readings(connection, root, writer, done, progress)
    with scanning(source, root, jobs, processes, executor) as scan:
        copies = marked.copies | readings.read(jobs, scan)
    if copies:  # whatever their step is
        jobs = [job for job in find_jobs(connection, run_id, root, shards) if job.shard_id in copies]
        with scanning(source, root, jobs, processes, executor) as scan:
            readings.read(jobs, scan)
    done.moved = writer.moved
    _note_read(connection, writer, done, shards)
    # A step of which nothing is left after what was read is one that was found by its place again.
    discover_steps(connection, run_id, shards)
    note_read_steps(connection, run_id)
    make_missing(connection)
    _note_states(connection, done)
    done.notes = list(getattr(source, "notes", list)())
    return done


def _discover(
    connection: sqlite3.Connection, source: Source, root: Root, done: Refreshed
) -> tuple[list[Shard], Marked]:
    """Return the shards that can be read, having brought up to date what is known without opening one."""
    shards = listed_shards(connection, source, root)
    refuse_double_counting(connection, done.run_id, shards)
    marked = mark_gone(connection, done.run_id, {shard.path for shard in shards})
    done.gone = marked.gone
    note_unopened(connection, done.run_id, shards)
    discover_steps(connection, done.run_id, shards)
    note_read_steps(connection, done.run_id)
    _note_states(connection, done)
    return [shard for shard in shards if not shard.aside], marked


@dataclass
class _Readings:
    """The readings of one refresh, one shard after the other: first what is new, then where rows have moved to."""

    connection: sqlite3.Connection
    root: Root
    writer: RunWriter
    done: Refreshed
    progress: Progress | None
    passed: int = 0  # new bytes of the shards that are behind
    total: int = 0

    def read(self, jobs: list[Job], scan: Scan) -> set[int]:
        """Read these shards, and return those that rows of them have moved to, which are to be read again."""
        self.total += sum(job.new_bytes for job in jobs)
        moved_to: set[int] = set()
        for job in jobs:
            reading = Reading(self.connection, self.root, self.writer, job)
            for read in reading.commits(scan(job)):
                if self.progress:
                    # More than was seen before: the file has grown meanwhile, or is compressed.
                    self.progress(self.passed + min(read, job.new_bytes), self.total)
            self.passed += job.new_bytes
            moved_to |= reading.moved_to
            _note_shard(reading, self.done)
        return moved_to


def _note_read(connection: sqlite3.Connection, writer: RunWriter, done: Refreshed, shards: list[Shard]) -> None:
    """Bring what is kept of a run as a whole up to date."""
    with transaction(connection):
        if writer.replaced or done.removed:
            writer.columns.recount()
            writer.rule.choose_without_label(writer.columns)
        refresh_steps(connection, done.run_id)
        forget_left_steps(connection, done.run_id, shards)
        connection.execute("update runs set indexed_at = ? where id = ?", (utc_now(), done.run_id))


def _note_shard(reading: Reading, done: Refreshed) -> None:
    """Add what a shard gave to what the whole refresh did."""
    file = reading.job.shard.file
    done.read_shards += 1
    done.read_bytes += reading.read_bytes()
    done.removed += reading.removed
    if reading.state == "unread":
        done.unread[file] = reading.note
    if reading.misfit:
        done.misfits[file] = reading.misfit


def _note_states(connection: sqlite3.Connection, done: Refreshed) -> None:
    """Note which files wait or are aside, whether this refresh has read them or an earlier one."""
    waiting = connection.execute(
        "select file from shards where run_id = ? and state = 'waiting' order by path", (done.run_id,)
    )
    done.waiting = [file for (file,) in waiting]
    aside = connection.execute(
        """
        select s.file, p.reason from shards s join problems p on p.shard_id = s.id and p.line is null
        where s.run_id = ? and s.state in ('aside', 'unread') and s.problems > 0 order by s.path, p.id desc
        """,
        (done.run_id,),
    )
    done.aside = dict(aside.fetchall())
    others = connection.execute(
        """
        select reason, files, file from (
            select p.reason, s.file, s.path, count(*) over (partition by p.reason) as files,
                row_number() over (partition by p.reason order by s.path) as place
            from shards s join problems p on p.shard_id = s.id and p.line is null
            where s.run_id = ? and s.state = 'aside' and s.problems = 0
        )
        where place <= ? order by path
        """,
        (done.run_id, MOST_NAMED),
    )
    done.others = {}
    for reason, files, file in others:
        done.others.setdefault(reason, Others(files, [])).first.append(file)
