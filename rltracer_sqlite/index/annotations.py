"""Later facts about trajectories: the latest annotation decides the columns that annotations speak of."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

OVERLAID = ("effective", "advantage", "ship_step", "logprob_mean")


def overlay(connection: sqlite3.Connection, run_id: int, uids: Iterable[str]) -> None:
    """Let the latest annotation decide the columns that annotations speak of; without one they stay as they are."""
    latest = ", ".join(
        f"""{column} = coalesce((select a.{column} from annotations a
            where a.trajectory_id = trajectories.id and a.{column} is not null
            order by a.shard_id desc, a.byte_offset desc limit 1), {column})"""
        for column in OVERLAID
    )
    connection.execute(
        f"""
        update trajectories set {latest} where id in (
            select a.trajectory_id from annotations a
            where a.run_id = ? and a.uid in (select value from json_each(?)))
        """,
        (run_id, json.dumps(list(uids))),
    )


def forget_annotations(connection: sqlite3.Connection, shard_id: int) -> None:
    """Remove a shard's annotations and what they said from the trajectories."""
    for column in OVERLAID:
        connection.execute(
            f"""
            update trajectories set {column} = null where id in (
                select trajectory_id from annotations where shard_id = ? and {column} is not null)
            """,
            (shard_id,),
        )
    connection.execute("delete from annotations where shard_id = ?", (shard_id,))
