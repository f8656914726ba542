"""What a rewritten shard no longer holds: rows that go, rows that live on in another file, annotations that end."""

from __future__ import annotations

import sqlite3

from .annotations import COPY, forget_annotations, overlay
from .derived import StepKey
from .repeats import repeats_of
from .statistics import refresh_groups
from .words import forget_words


def drop_stale(connection: sqlite3.Connection, run_id: int, shard_id: int, held: set[int]) -> tuple[int, set[StepKey]]:
    """Remove the rows whose record a rewritten shard no longer holds; one that lives on elsewhere moves there.

    Returns how many were removed, and the steps whose numbers are to be recomputed.
    """
    rows = connection.execute(
        "select id, uid, prompt_group_id, step, split from trajectories where shard_id = ?", (shard_id,)
    ).fetchall()
    stale = [row for row in rows if row[0] not in held]
    removed = []
    for identity, uid, _, _, _ in stale:
        other = connection.execute(
            """
            select a.id, a.shard_id, a.byte_offset, a.byte_length, a.line, a.item
            from annotations a join shards s on s.id = a.shard_id
            where a.trajectory_id = ? and a.producer in ('effective', 'copy') and a.shard_id <> ?
            order by a.producer, s.step desc, s.path desc, a.id desc limit 1
            """,
            (identity, shard_id),
        ).fetchone()
        if other:
            connection.execute(
                "update trajectories set shard_id = ?, byte_offset = ?, byte_length = ?, line = ?, item = ?"
                " where id = ?",
                (*other[1:], identity),
            )
            _forget_repeat(connection, other[0], other[1], uid)
        else:
            connection.execute("update annotations set trajectory_id = null where trajectory_id = ?", (identity,))
            connection.execute("delete from trajectories where id = ?", (identity,))
            removed.append(identity)
    forget_words(connection, removed)
    refresh_groups(connection, {row[2] for row in stale if row[2] is not None})
    overlay(connection, run_id, [row[1] for row in stale])
    return len(removed), {(row[3], row[4]) for row in stale}


def _forget_repeat(connection: sqlite3.Connection, annotation_id: int, shard_id: int, uid: str) -> None:
    """Forget that a record repeats another one, where the row is now its own."""
    connection.execute("delete from annotations where id = ? and producer = ?", (annotation_id, COPY))
    beginning = repeats_of(uid)
    told = connection.execute(
        """
        delete from problems where id = (
            select id from problems where shard_id = ? and substr(reason, 1, ?) = ? order by id desc limit 1
        )
        """,
        (shard_id, len(beginning), beginning),
    )
    connection.execute("update shards set problems = problems - ? where id = ?", (told.rowcount, shard_id))


def forget_findings(connection: sqlite3.Connection, shard_id: int) -> None:
    """Forget what a shard was found to hold besides trajectories, before it is read from its start."""
    connection.execute("delete from problems where shard_id = ?", (shard_id,))
    forget_annotations(connection, shard_id)
    connection.execute(
        "update shards set indexed_bytes = 0, lines = 0, records = 0, problems = 0 where id = ?", (shard_id,)
    )
