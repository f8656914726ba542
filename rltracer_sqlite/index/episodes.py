"""The trajectories of an episode: of a solver and its judge, of an agent and its sub-agents."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

MOST_TRACES = 50


@dataclass(frozen=True)
class Trace:
    """One trajectory of an episode."""

    id: int
    agent: str | None
    success: int | None
    reward: float | None
    turns: int


@dataclass(frozen=True)
class Episode:
    """The trajectories of an episode in the order of their record, as many as are shown, and how many there are."""

    traces: list[Trace]
    trajectories: int


def episode_traces(connection: sqlite3.Connection, row: dict[str, Any]) -> Episode | None:
    """Return the other trajectories of a row's episode, sub-agents among them; None where it has no others."""
    if row["episode_id"] is None:
        return None
    place = (row["run_id"], row["episode_id"])
    found = connection.execute(
        """
        select id, agent, success, reward, turns from trajectories where run_id = ? and episode_id = ?
        order by shard_id, byte_offset, item, id limit ?
        """,
        (*place, MOST_TRACES),
    ).fetchall()
    if len(found) < 2:
        return None
    count = connection.execute(
        "select count(*) from trajectories where run_id = ? and episode_id = ?", place
    ).fetchone()[0]
    return Episode([Trace(*trace) for trace in found], count)
