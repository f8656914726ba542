"""What there is to read in a run: which shards are new, have grown or were rewritten."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ..sources.base import PACKED, LocatorError, Position, Shard, SourceError
from ..sources.files import open_shard
from ..sources.places import FileStatus, Root, base_folder, file_status
from ..sources.readers import ByteReader
from .database import transaction
from .states import NOT_OPENED

HASHED_BYTES = 4096
NOT_TOLD = 0, 0  # the size and the time of a file of which the system tells neither
# Without hashes a shard is read from its start, and with this size and time it is read in any case.
TO_READ_AGAIN = """
    state = iif(state = 'gone', state, 'reading'), size = 0, mtime_ns = 0, head_hash = null, tail_hash = null
"""
Fingerprints: TypeAlias = "tuple[str | None, str | None]"
"""The hashes of the beginning and of the end of what has been read of a shard; None where it has fewer bytes."""


class FileNow(NamedTuple):
    """The file of a shard: another one under the same name has another identity."""

    identity: tuple[int, int]
    size: int


@dataclass
class Job:
    """One shard with something to read."""

    shard: Shard
    shard_id: int
    start: Position
    size: int
    mtime_ns: int
    again: bool  # read from the start although rows of it exist
    is_resumed: bool = False  # goes on where a reading was stopped or killed
    file: FileNow | None = None  # as it was before it was read

    @property
    def new_bytes(self) -> int:
        return max(self.size - self.start.offset, 0)


def read_again(connection: sqlite3.Connection, shard_ids: Collection[int]) -> None:
    """Have these shards read from their start, those that are gone when they are back."""
    if shard_ids:
        connection.execute(
            f"update shards set {TO_READ_AGAIN} where id in (select value from json_each(?))",
            (json.dumps(list(shard_ids)),),
        )


def refuse_double_counting(connection: sqlite3.Connection, run_id: int, shards: Iterable[Shard]) -> None:
    """Raise SourceError where files that are indexed would now be left aside, since others hold the same rollouts."""
    rows = connection.execute(
        "select path from shards where run_id = ? and producer is null and records > 0", (run_id,)
    )
    indexed = {path for (path,) in rows}
    for shard in shards:
        if shard.aside and shard.path in indexed:
            raise SourceError(
                f"{shard.file} is already indexed, and would be left aside now: {shard.aside}. Use --rebuild."
            )


def discover_steps(connection: sqlite3.Connection, run_id: int, shards: Iterable[Shard]) -> None:
    """List the steps that the shards' places tell, as discovered and not read."""
    forget_left_steps(connection, run_id, shards)
    found = new_steps(connection, run_id, shards)
    if not found:
        return
    with transaction(connection):
        connection.executemany(
            "insert or ignore into steps (run_id, step, split) values (?, ?, ?)",
            [(run_id, step, split) for step, split in sorted(found, key=lambda place: (place[0], place[1] or ""))],
        )


def forget_left_steps(connection: sqlite3.Connection, run_id: int, shards: Iterable[Shard]) -> None:
    """Forget the steps without a trajectory that no file is of, and none that was read was of.

    All trajectories have left such a step for others, or its files have gone before they were read.
    """
    told = {(shard.step, shard.split) for shard in shards if shard.step is not None and not shard.aside}
    empty = connection.execute(
        """
        select id, step, split from steps where run_id = ?1 and trajectories = 0
            and (step is null or not exists (
                select 1 from shards s where s.run_id = ?1 and s.step is steps.step and s.split is steps.split))
        """,
        (run_id,),
    ).fetchall()
    left = [(identity,) for identity, *place in empty if tuple(place) not in told]
    connection.executemany("delete from steps where id = ?", left)


def new_steps(connection: sqlite3.Connection, run_id: int, shards: Iterable[Shard]) -> set[tuple[int, str | None]]:
    """Return (step, split) of the shards' places that the index does not list."""
    rows = connection.execute("select step, split, trajectories from steps where run_id = ?", (run_id,)).fetchall()
    known = {(step, split) for step, split, _ in rows}
    # A step that has been read has the splits of its records, also where its place names none.
    known |= {(step, None) for step, _, trajectories in rows if trajectories}
    return {(shard.step, shard.split) for shard in shards if shard.step is not None and not shard.aside} - known


def find_jobs(connection: sqlite3.Connection, run_id: int, root: Root, shards: Iterable[Shard]) -> list[Job]:
    """Return what there is to read of these shards; one that has not changed costs a stat."""
    rows = connection.execute(
        f"""
        select path, id, size, mtime_ns, indexed_bytes, lines, head_hash, tail_hash, state
        from shards where run_id = ? and not {NOT_OPENED}
        """,
        (run_id,),
    )
    known = {path: tuple(rest) for path, *rest in rows}
    status = file_status(root)
    jobs = [job for shard in shards if (job := _job(root, status, shard, known.get(shard.path))) is not None]
    for job in jobs:
        job.file = file_now(root, job.shard)
    return jobs


def _job(root: Root, status: FileStatus, shard: Shard, known: tuple[Any, ...] | None) -> Job | None:
    shard, size, mtime_ns = _as_it_is(status, shard)
    if known is None:
        return Job(shard, 0, Position(), size, mtime_ns, again=False)
    shard_id, old_size, old_mtime_ns, indexed, lines, head, tail, state = known
    # A file without a size, of which the system does not tell one, is not what was read, nor what is to be read again.
    if (size, mtime_ns) == (old_size, old_mtime_ns) and (size, mtime_ns) != NOT_TOLD and state != "unread":
        return None
    grown = size != old_size and state != "unread" and _still_begins(root, shard, indexed, head, tail)
    start = Position(indexed, lines) if grown else Position()
    return Job(shard, shard_id, start, size, mtime_ns, again=not grown, is_resumed=grown and state == "reading")


def file_now(root: Root, shard: Shard) -> FileNow | None:
    """Return the file of a shard; None where there is none, or where it is remote and checked while it is read."""
    if not isinstance(root, Path):
        return None
    try:
        status = os.stat(base_folder(root) / shard.file)
    except OSError:
        return None
    return FileNow((status.st_dev, status.st_ino), status.st_size)


def _as_it_is(status: FileStatus, shard: Shard) -> tuple[Shard, int, int]:
    """Return a shard with the file that it is now, which may have been sealed since they were listed; size and time."""
    for file in (shard.file, shard.path + PACKED):
        try:
            return replace(shard, file=file), *status(file)
        except (OSError, LocatorError):
            continue
    return shard, *NOT_TOLD  # reading it will say why


def _still_begins(root: Root, shard: Shard, indexed: int, head: str | None, tail: str | None) -> bool:
    """Say whether a shard still begins with the bytes that were read, judged by the first and last 4 KiB of them."""
    try:
        with open_shard(root, shard.path) as reader:
            return head is not None and fingerprints(reader, indexed) == (head, tail)
    except (SourceError, OSError):  # reading it again will say why
        return False


def fingerprints(reader: ByteReader, length: int, beginning: bytes = b"") -> Fingerprints:
    """Return hashes of the first and the last 4 KiB of the first `length` bytes; None where there are fewer.

    Raises LocatorError where the first bytes are not `beginning` any more, as far as both go.
    """
    part = min(HASHED_BYTES, length)
    head, tail = reader.pread(part, 0), reader.pread(part, length - part)
    if head[: len(beginning)] != beginning[: len(head)]:
        raise LocatorError("it was rewritten while it was read; the next indexing reads it again")
    if len(head) < part or len(tail) < part:
        return None, None
    return blake2b(head, digest_size=16).hexdigest(), blake2b(tail, digest_size=16).hexdigest()
