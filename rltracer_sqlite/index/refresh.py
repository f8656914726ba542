"""Bringing an index up to date with a run: what is new is read, what is unchanged costs a stat."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from ..sources.base import Entry, LocatorError, NotRollouts, Position, Problem, Shard, Source, SourceError, Update
from ..sources.files import ByteReader, base_folder, open_shard
from .database import begin_writing
from .rows import DEFAULT_SUCCESS, RunWriter, forget_annotations, overlay
from .statistics import apply_success, mark_steps, refresh_groups, refresh_steps, utc_now

HASHED_BYTES = 4096
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


@dataclass
class Job:
    """One shard with something to read."""

    shard: Shard
    shard_id: int
    start: Position
    size: int
    mtime_ns: int
    again: bool  # read from the start although rows of it exist

    @property
    def new_bytes(self) -> int:
        return max(self.size - self.start.offset, 0)


def ensure_run(
    connection: sqlite3.Connection, source: str, root: Path, name: str | None = None, tokenizer: str | None = None
) -> int:
    """Return the id of the run at `root`, making its row when it is new."""
    where = str(root.resolve())
    found = connection.execute("select id, name from runs where root = ?", (where,)).fetchone()
    if found:
        if name and name != found[1]:
            connection.execute("update runs set name = ? where id = ?", (_free_name(connection, name), found[0]))
        if tokenizer:
            connection.execute("update runs set tokenizer = ? where id = ?", (tokenizer, found[0]))
        return int(found[0])
    cursor = connection.execute(
        """
        insert into runs (name, root, source, tokenizer, success_path, success_threshold, created_at)
        values (?, ?, ?, ?, ?, ?, ?)
        """,
        (_free_name(connection, name or run_name(root)), where, source, tokenizer, *DEFAULT_SUCCESS, utc_now()),
    )
    return int(cursor.lastrowid or 0)


def set_success(connection: sqlite3.Connection, run_id: int, path: str, threshold: float) -> None:
    """Set a run's success rule and apply it to what is indexed, without reading a file."""
    with transaction(connection):
        connection.execute(
            "update runs set success_path = ?, success_threshold = ?, success_chosen = 1 where id = ?",
            (path, threshold, run_id),
        )
        apply_success(connection, run_id)
        refresh_steps(connection, run_id)


def run_name(root: Path) -> str:
    """Return a short name for a run: its folder's, or that of the experiment around a folder of a fixed name."""
    fixed = {"rollouts", "run_default", "token_exports", "outputs", "evals", "batches"}
    path = root.resolve()
    while path.name in fixed and path.parent != path:
        path = path.parent
    return path.name or "run"


def _free_name(connection: sqlite3.Connection, wanted: str) -> str:
    name, number = wanted, 2
    while connection.execute("select 1 from runs where name = ?", (name,)).fetchone():
        name, number = f"{wanted} ({number})", number + 1
    return name


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
    _mark_gone(connection, run_id, {shard.path for shard in shards}, done)
    _discover_steps(connection, run_id, shards)
    if discover_only:
        return done
    jobs = [job for shard in shards if steps(shard.step) and (job := _job(connection, run_id, root, shard)) is not None]
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


class transaction:
    """A transaction that is rolled back on any error: `with transaction(connection):`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __enter__(self) -> None:
        self.connection.execute("begin immediate")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.connection.execute("commit" if kind is None else "rollback")


def _mark_gone(connection: sqlite3.Connection, run_id: int, present: set[str], done: Refreshed) -> None:
    known = connection.execute("select id, path, state from shards where run_id = ?", (run_id,)).fetchall()
    done.gone = [path for _, path, _ in known if path not in present]
    changed = [(shard_id, path) for shard_id, path, state in known if (path not in present) != (state == "gone")]
    if not changed:
        return
    with transaction(connection):
        for shard_id, path in changed:
            gone = path not in present
            # What has come back may have changed meanwhile: its size and time are compared as usual.
            connection.execute("update shards set state = ? where id = ?", ("gone" if gone else "complete", shard_id))
            connection.execute("update trajectories set gone = ? where shard_id = ?", (int(gone), shard_id))


def _discover_steps(connection: sqlite3.Connection, run_id: int, shards: Iterable[Shard]) -> None:
    known = set(connection.execute("select step, split from steps where run_id = ?", (run_id,)))
    found = {(shard.step, shard.split) for shard in shards if shard.step is not None} - known
    if not found:
        return
    with transaction(connection):
        connection.executemany(
            "insert or ignore into steps (run_id, step, split) values (?, ?, ?)",
            [(run_id, step, split) for step, split in found],
        )


def _job(connection: sqlite3.Connection, run_id: int, root: Path, shard: Shard) -> Job | None:
    """Return what there is to read of a shard, or None where nothing has changed."""
    try:
        status = os.stat(base_folder(root) / shard.file)
        size, mtime_ns = status.st_size, status.st_mtime_ns
    except OSError:
        size, mtime_ns = 0, 0
    known = connection.execute(
        """
        select id, size, mtime_ns, indexed_bytes, lines, head_hash, tail_hash, state
        from shards where run_id = ? and path = ?
        """,
        (run_id, shard.path),
    ).fetchone()
    if known is None:
        return Job(shard, 0, Position(), size, mtime_ns, again=False)
    shard_id, old_size, old_mtime_ns, indexed, lines, head, tail, state = known
    if (size, mtime_ns) == (old_size, old_mtime_ns) and state != "unread":
        return None
    grown = size != old_size and _still_begins(root, shard, indexed, head, tail)
    start = Position(indexed, lines) if grown else Position()
    return Job(shard, shard_id, start, size, mtime_ns, again=not grown and indexed > 0)


def _still_begins(root: Path, shard: Shard, indexed: int, head: str | None, tail: str | None) -> bool:
    """Say whether a shard still begins with the bytes that were read, judged by the first and last 4 KiB of them."""
    try:
        with open_shard(root, shard.path) as reader:
            return head is not None and fingerprints(reader, indexed) == (head, tail)
    except SourceError:
        return False


def fingerprints(reader: ByteReader, length: int) -> tuple[str, str] | tuple[None, None]:
    """Return hashes of the first and the last 4 KiB of the first `length` bytes; None where there are fewer."""
    part = min(HASHED_BYTES, length)
    head, tail = reader.pread(part, 0), reader.pread(part, length - part)
    if len(head) < part or len(tail) < part:
        return None, None
    return blake2b(head, digest_size=16).hexdigest(), blake2b(tail, digest_size=16).hexdigest()


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
            _forget_findings(connection, shard_id)
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
            done.removed += _drop_stale(connection, writer.run_id, shard_id, held)
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


def _forget_findings(connection: sqlite3.Connection, shard_id: int) -> None:
    connection.execute("delete from problems where shard_id = ?", (shard_id,))
    forget_annotations(connection, shard_id)
    connection.execute("update shards set indexed_bytes = 0, lines = 0, records = 0 where id = ?", (shard_id,))


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


def _drop_stale(connection: sqlite3.Connection, run_id: int, shard_id: int, held: set[int]) -> int:
    """Remove the rows whose record a rewritten shard no longer holds; one that lives on elsewhere moves there."""
    rows = connection.execute(
        "select id, uid, prompt_group_id, step, split from trajectories where shard_id = ?", (shard_id,)
    ).fetchall()
    stale = [row for row in rows if row[0] not in held]
    removed = 0
    for identity, _, _, _, _ in stale:
        other = connection.execute(
            """
            select shard_id, byte_offset, byte_length, line, item from annotations
            where trajectory_id = ? and producer = 'effective' and shard_id <> ? order by id desc limit 1
            """,
            (identity, shard_id),
        ).fetchone()
        if other:
            connection.execute(
                "update trajectories set shard_id = ?, byte_offset = ?, byte_length = ?, line = ?, item = ?"
                " where id = ?",
                (*other, identity),
            )
        else:
            connection.execute("update annotations set trajectory_id = null where trajectory_id = ?", (identity,))
            connection.execute("delete from trajectories where id = ?", (identity,))
            removed += 1
    refresh_groups(connection, {row[2] for row in stale if row[2] is not None})
    mark_steps(connection, run_id, {(row[3], row[4]) for row in stale})
    overlay(connection, run_id, [row[1] for row in stale])
    return removed


def _aside(connection: sqlite3.Connection, run_id: int) -> dict[str, str]:
    rows = connection.execute(
        """
        select s.path, p.reason from shards s join problems p on p.shard_id = s.id and p.line is null
        where s.run_id = ? and s.state in ('aside', 'unread')
        """,
        (run_id,),
    )
    return dict(rows.fetchall())
