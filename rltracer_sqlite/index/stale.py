"""What a rewritten shard no longer holds: rows that go, rows that live on in another file, annotations that end."""

from __future__ import annotations

import sqlite3

from .annotations import RECORD, forget_annotations, overlay
from .columns import uncount
from .derived import StepKey
from .plan import read_again
from .statistics import refresh_groups
from .words import forget_words


def drop_stale(
    connection: sqlite3.Connection, run_id: int, shard_id: int, held: set[int]
) -> tuple[int, set[StepKey], set[int]]:
    """Remove the rows whose record a rewritten shard no longer holds; one that lives on elsewhere moves there.

    Returns how many were removed, the steps whose numbers are to be recomputed, and the shards that rows have moved to:
    the records there may say something else, so that they are read again.
    """
    rows = connection.execute(
        "select id, uid, prompt_group_id, step, split from trajectories where shard_id = ?", (shard_id,)
    ).fetchall()
    stale = [row for row in rows if row[0] not in held]
    moved = {identity: _move(connection, identity, shard_id) for identity, *_ in stale}
    removed = [identity for identity, shard in moved.items() if shard is None]
    moved_to = {shard for shard in moved.values() if shard is not None}
    _remove(connection, removed)
    refresh_groups(connection, {row[2] for row in stale if row[2] is not None})
    overlay(connection, run_id, [row[1] for row in stale])
    read_again(connection, moved_to)
    return len(removed), {(row[3], row[4]) for row in stale}, moved_to


def _move(connection: sqlite3.Connection, trajectory_id: int, shard_id: int) -> int | None:
    """Move a row from a shard to another that holds its record too, and return that one; None where there is none."""
    other = connection.execute(
        """
        select a.shard_id, a.byte_offset, a.byte_length, a.line, a.item, s.state = 'gone'
        from annotations a join shards s on s.id = a.shard_id
        where a.trajectory_id = ? and a.producer in ('effective', 'copy') and a.shard_id <> ?
        order by s.state = 'gone', a.producer, s.step desc, s.path desc, a.id desc limit 1
        """,
        (trajectory_id, shard_id),
    ).fetchone()
    if other is None:
        return None
    connection.execute(
        """
        update trajectories set shard_id = ?, byte_offset = ?, byte_length = ?, line = ?, item = ?, gone = ?
        where id = ?
        """,
        (*other, trajectory_id),
    )
    return int(other[0])


def _remove(connection: sqlite3.Connection, trajectory_ids: list[int]) -> None:
    """Remove rows; what other files say of them later is kept, for a record of the same id."""
    uncount(connection, trajectory_ids)
    ids = [(identity,) for identity in trajectory_ids]
    connection.executemany(f"delete from annotations where trajectory_id = ? and producer = '{RECORD}'", ids)
    connection.executemany("update annotations set trajectory_id = null where trajectory_id = ?", ids)
    connection.executemany("delete from trajectories where id = ?", ids)
    forget_words(connection, trajectory_ids)


def forget_findings(connection: sqlite3.Connection, shard_id: int) -> None:
    """Forget what a shard was found to hold besides trajectories, before it is read from its start."""
    connection.execute("delete from problems where shard_id = ?", (shard_id,))
    forget_annotations(connection, shard_id)
    connection.execute(
        "update shards set indexed_bytes = 0, lines = 0, records = 0, problems = 0 where id = ?", (shard_id,)
    )
