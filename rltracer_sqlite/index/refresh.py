"""Bringing an index up to date with a run: what is new is read, what is unchanged costs a stat."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..sources.base import Entry, LocatorError, NotRollouts, Position, Problem, Source, Update
from ..sources.files import open_shard
from .database import begin_writing, transaction
from .plan import Job, discover_steps, fingerprints, job_for, mark_gone
from .rows import RunWriter
from .stale import drop_stale, forget_findings
from .statistics import refresh_steps, utc_now

Progress = Callable[[int, int], None]  # bytes read so far, bytes to read


@dataclass
class Refreshed:
    """What one refresh did."""

    run_id: int
    read_bytes: int = 0
    read_shards: int = 0
    removed: int = 0  # rows whose record a rewritten file no longer holds
    waiting: list[str] = field(default_factory=list)  # shards whose last line is not finished
    aside: dict[str, str] = field(default_factory=dict)  # files that hold no rollouts, and what they hold
    gone: list[str] = field(default_factory=list)


def refresh_run(
    connection: sqlite3.Connection,
    source: Source,
    root: Path,
    run_id: int,
    steps: Callable[[int | None], bool] = lambda step: True,
    discover_only: bool = False,
    progress: Progress | None = None,
) -> Refreshed:
    """Read what is new at `root` into the index; `steps` chooses by a shard's step (None: not known from its place)."""
    done = Refreshed(run_id)
    shards = list(source.shards(root))
    done.gone = mark_gone(connection, run_id, {shard.path for shard in shards})
    discover_steps(connection, run_id, shards)
    if discover_only:
        return done
    jobs = [
        job for shard in shards if steps(shard.step) and (job := job_for(connection, run_id, root, shard)) is not None
    ]
    if not jobs:
        return done
    begin_writing(connection)
    total, passed = sum(job.new_bytes for job in jobs), 0
    writer = RunWriter(connection, run_id)
    for job in jobs:
        _read(connection, source, root, writer, job, done)
        passed += job.new_bytes
        if progress:
            progress(passed, total)
    with transaction(connection):
        if writer.replaced or done.removed:
            writer.columns.recount()
        refresh_steps(connection, run_id)
        connection.execute("update runs set indexed_at = ? where id = ?", (utc_now(), run_id))
    done.aside = _aside(connection, run_id)
    return done


def _read(
    connection: sqlite3.Connection, source: Source, root: Path, writer: RunWriter, job: Job, done: Refreshed
) -> None:
    """Read one shard; each stretch between two positions is one transaction, a re-read shard as a whole is one."""
    entries: list[Entry] = []
    updates: list[Update] = []
    problems: list[Problem] = []
    held: set[int] = set()
    state, note, reached = "complete", None, job.start
    connection.execute("begin immediate")
    try:
        shard_id = job.shard_id = _shard_row(connection, writer.run_id, job)
        if job.again:
            forget_findings(connection, shard_id)
        try:
            for found in source.scan(root, job.shard, job.start):
                if isinstance(found, Position):
                    held |= writer.write(shard_id, job.shard, entries, updates, problems)
                    reached = found
                    _note_progress(connection, root, job, found, len(entries) + len(updates))
                    entries, updates, problems = [], [], []
                    if not job.again:
                        connection.execute("commit")
                        connection.execute("begin immediate")
                elif isinstance(found, Entry):
                    entries.append(found)
                elif isinstance(found, Update):
                    updates.append(found)
                else:
                    problems.append(found)
        except NotRollouts as error:
            state, note = "aside", str(error)
        except (LocatorError, OSError) as error:
            held |= writer.write(shard_id, job.shard, entries, updates, problems)
            state, note = "unread", str(error)
        if reached.waiting:
            state = "waiting"
            done.waiting.append(job.shard.path)
        if job.again and state != "unread":
            done.removed += drop_stale(connection, writer.run_id, shard_id, held)
        _close_shard(connection, job, state, note)
        refresh_steps(connection, writer.run_id)
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    done.read_shards += 1
    done.read_bytes += max(reached.offset - job.start.offset, 0)


def _shard_row(connection: sqlite3.Connection, run_id: int, job: Job) -> int:
    shard = job.shard
    connection.execute(
        """
        insert into shards (run_id, path, layout, producer, step, split, size, mtime_ns, state)
        values (?, ?, ?, ?, ?, ?, 0, 0, 'unread') on conflict (run_id, path) do nothing
        """,
        (run_id, shard.path, shard.layout, shard.producer, shard.step, shard.split),
    )
    row = connection.execute("select id from shards where run_id = ? and path = ?", (run_id, shard.path)).fetchone()
    return int(row[0])


def _note_progress(connection: sqlite3.Connection, root: Path, job: Job, reached: Position, records: int) -> None:
    with open_shard(root, job.shard.path) as reader:
        head, tail = fingerprints(reader, reached.offset)
    connection.execute(
        """
        update shards set indexed_bytes = ?, lines = ?, records = records + ?, head_hash = ?, tail_hash = ?
        where id = ?
        """,
        (reached.offset, reached.line, records, head, tail, job.shard_id),
    )


def _close_shard(connection: sqlite3.Connection, job: Job, state: str, note: str | None) -> None:
    if note:
        connection.execute("delete from problems where shard_id = ? and line is null", (job.shard_id,))
        connection.execute(
            "insert into problems (shard_id, reason) values (?, ?)",
            (job.shard_id, note if state == "unread" else f"no rollouts here: {note}"),
        )
    # Size and time are those from before reading: what came in between is found by the next refresh.
    connection.execute(
        """
        update shards set size = ?, mtime_ns = ?, state = ?,
            problems = (select count(*) from problems where shard_id = shards.id)
        where id = ?
        """,
        (job.size, job.mtime_ns, state, job.shard_id),
    )


def _aside(connection: sqlite3.Connection, run_id: int) -> dict[str, str]:
    rows = connection.execute(
        """
        select s.path, p.reason from shards s join problems p on p.shard_id = s.id and p.line is null
        where s.run_id = ? and s.state in ('aside', 'unread')
        """,
        (run_id,),
    )
    return dict(rows.fetchall())
