"""What the index knows about a trajectory besides its own row: the others of its prompt group."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

MOST_SIBLINGS = 256

MARKS = {1: ("pass", "✓", "passed"), 0: ("fail", "✗", "failed"), None: ("none", "–", "not scored")}


@dataclass(frozen=True)
class Sibling:
    """One trajectory of a prompt group."""

    id: int
    place: int  # in its group, counted from 1
    success: int | None
    reward: float | None


@dataclass(frozen=True)
class Group:
    """The trajectories of a prompt group, as many of them as are shown, and how many there are."""

    siblings: list[Sibling]
    trajectories: int
    scored: int
    successes: int
    place: int | None  # of the trajectory that was asked for


def prompt_group(connection: sqlite3.Connection, row: dict[str, Any]) -> Group | None:
    """Return the prompt group of a trajectory's row, or None where it belongs to none.

    A large group is shown around the trajectory that was asked for.
    """
    if row["prompt_group_id"] is None:
        return None
    counted = connection.execute(
        """
        select count(*), count(success), ifnull(sum(success), 0), ifnull(sum(id <= :id), 0)
        from trajectories where prompt_group_id = :group
        """,
        {"group": row["prompt_group_id"], "id": row["id"]},
    ).fetchone()
    trajectories, scored, successes, place = tuple(counted)
    before = max(0, min(place - MOST_SIBLINGS // 2, trajectories - MOST_SIBLINGS))
    found = connection.execute(
        """
        select id, success, reward from trajectories where prompt_group_id = :group
        order by id limit :most offset :before
        """,
        {"group": row["prompt_group_id"], "most": MOST_SIBLINGS, "before": before},
    )
    siblings = [Sibling(r[0], before + number, r[1], r[2]) for number, r in enumerate(found, start=1)]
    return Group(siblings, trajectories, scored, successes, place)


def trajectory_by_uid(connection: sqlite3.Connection, run: str, uid: str) -> int | None:
    """Return the id of the trajectory with a recorded id in a run, or None; `run` is a name, else a number."""
    found = connection.execute(
        """
        select t.id from trajectories t join runs r on r.id = t.run_id
        where t.uid = :uid and (r.name = :run or cast(r.id as text) = :run) order by r.name = :run desc
        """,
        {"run": run, "uid": uid},
    ).fetchone()
    return found[0] if found else None
