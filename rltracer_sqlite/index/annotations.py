"""Later facts about trajectories: the latest annotation decides the columns that annotations speak of.

What a record itself says in these columns is kept as an annotation of the producer "record" as soon as another one
speaks of the same trajectory, so that it counts again when that one is gone. A record that stands in a second file
is an annotation of the producer "copy": a place where the trajectory lives on.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from ..sources.base import Entry, Update

OVERLAID = ("effective", "advantage", "ship_step", "logprob_mean")
RECORD, COPY = "record", "copy"
OWN = f"('{RECORD}', '{COPY}')"


def insert_annotations(
    connection: sqlite3.Connection,
    run_id: int,
    shard_id: int,
    producer: str,
    updates: Sequence[Update],
    ids: dict[str, int],
) -> None:
    """Write what a shard says of trajectories; `ids` are those whose record is known already."""
    _keep_own(connection, run_id, [update.uid for update in updates], "not exists")
    connection.executemany(
        """
        insert into annotations (run_id, uid, trajectory_id, producer, effective, advantage, ship_step,
            logprob_mean, shard_id, byte_offset, byte_length, line, item)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [
            (run_id, u.uid, ids.get(u.uid), producer, u.effective, u.advantage, u.ship_step, u.logprob_mean,
             shard_id, u.byte_offset, u.byte_length, u.line, u.item)
            for u in updates
        ],
    )  # fmt: skip


def insert_copies(connection: sqlite3.Connection, run_id: int, shard_id: int, copies: Sequence[Entry]) -> None:
    """Note that these records, whose row belongs to another file, stand in this one too."""
    connection.executemany(
        f"""
        insert into annotations (run_id, uid, trajectory_id, producer, shard_id, byte_offset, byte_length, line, item)
        select run_id, uid, id, '{COPY}', ?, ?, ?, ?, ? from trajectories where run_id = ? and uid = ?
        """,
        [(shard_id, c.byte_offset, c.byte_length, c.line, c.item, run_id, c.uid) for c in copies],
    )


def keep_place(connection: sqlite3.Connection, trajectory_ids: Iterable[int]) -> None:
    """Note where the records of these trajectories are, before their rows move to another file."""
    connection.execute(
        f"""
        insert into annotations (run_id, uid, trajectory_id, producer, shard_id, byte_offset, byte_length, line, item)
        select run_id, uid, id, '{COPY}', shard_id, byte_offset, byte_length, line, item
        from trajectories where id in (select value from json_each(?))
        """,
        (json.dumps(list(trajectory_ids)),),
    )


def resolve(connection: sqlite3.Connection, run_id: int, uids: Sequence[str]) -> None:
    """Join the annotations that were waiting for these trajectories to them."""
    connection.execute(
        """
        update annotations set trajectory_id = (
            select id from trajectories t where t.run_id = annotations.run_id and t.uid = annotations.uid)
        where run_id = ? and trajectory_id is null and uid in (select value from json_each(?))
        """,
        (run_id, json.dumps(uids)),
    )


def keep_rewritten(connection: sqlite3.Connection, run_id: int, uids: Sequence[str]) -> None:
    """Keep what these records say, which were just written, beside what annotations say of them."""
    connection.execute(
        f"""
        delete from annotations where producer = '{RECORD}' and run_id = ?
            and uid in (select value from json_each(?))
        """,
        (run_id, json.dumps(uids)),
    )
    _keep_own(connection, run_id, uids, "exists")


def _keep_own(connection: sqlite3.Connection, run_id: int, uids: Sequence[str], others: str) -> None:
    spoken = " or ".join(f"t.{column} is not null" for column in OVERLAID)
    connection.execute(
        f"""
        insert into annotations (run_id, uid, trajectory_id, producer, {", ".join(OVERLAID)}, shard_id, byte_offset,
            byte_length, line, item)
        select t.run_id, t.uid, t.id, '{RECORD}', {", ".join(f"t.{column}" for column in OVERLAID)}, t.shard_id,
            t.byte_offset, t.byte_length, t.line, t.item
        from trajectories t where t.run_id = ? and t.uid in (select value from json_each(?)) and ({spoken})
            and {others} (
                select 1 from annotations a where a.trajectory_id = t.id and a.producer <> '{COPY}')
        """,
        (run_id, json.dumps(uids)),
    )


def overlay(connection: sqlite3.Connection, run_id: int, uids: Iterable[str]) -> None:
    """Let the latest annotation decide the columns that annotations speak of, the record's own word last."""
    latest = ", ".join(
        f"""{column} = (select a.{column} from annotations a join shards s on s.id = a.shard_id
            where a.trajectory_id = trajectories.id and a.{column} is not null
            order by a.producer = '{RECORD}', s.step desc, s.path desc, a.byte_offset desc limit 1)"""
        for column in OVERLAID
    )
    connection.execute(
        f"""
        update trajectories set {latest} where id in (
            select a.trajectory_id from annotations a
            where a.run_id = ? and a.uid in (select value from json_each(?)) and a.producer <> '{COPY}')
        """,
        (run_id, json.dumps(list(uids))),
    )


def forget_annotations(connection: sqlite3.Connection, shard_id: int) -> None:
    """Remove a shard's annotations, and what they said from the trajectories."""
    rows = connection.execute(
        f"""
        select distinct run_id, uid, trajectory_id from annotations where shard_id = ? and producer not in {OWN}
        """,
        (shard_id,),
    ).fetchall()
    connection.execute(
        f"""
        update trajectories set {", ".join(f"{column} = null" for column in OVERLAID)}
        where id in (select value from json_each(?))
        """,
        (json.dumps([row[2] for row in rows if row[2] is not None]),),
    )
    connection.execute(f"delete from annotations where shard_id = ? and producer <> '{RECORD}'", (shard_id,))
    if rows:
        overlay(connection, rows[0][0], [row[1] for row in rows])
        _forget_own(connection, [row[2] for row in rows if row[2] is not None])


def _forget_own(connection: sqlite3.Connection, trajectory_ids: list[int]) -> None:
    """Remove what records say of themselves where nothing else speaks of their trajectories any more."""
    connection.execute(
        f"""
        delete from annotations where producer = '{RECORD}' and trajectory_id in (select value from json_each(?))
            and not exists (
                select 1 from annotations a
                where a.trajectory_id = annotations.trajectory_id and a.producer not in {OWN})
        """,
        (json.dumps(trajectory_ids),),
    )
