"""The trajectories beside one: those of its prompt group, as the index knows them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from rltracer_sqlite.index.queries import prompt_of_trajectory

MOST_SIBLINGS = 256

BEST_FIRST = "reward is null, reward desc, id"  # the usual order of a group; the worst is the last that has a reward
ENDS = """
(select id from trajectories where prompt_group_id = :group and reward is not null order by reward desc, id limit 1)
    as best,
(select id from trajectories where prompt_group_id = :group and reward is not null order by reward, id desc limit 1)
    as worst
"""


@dataclass(frozen=True)
class Sibling:
    """One trajectory of a prompt group."""

    id: int
    place: int  # in the order that is shown, counted from 1
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
    best: int | None = None  # the trajectory with the highest reward; none where all rewards are equal
    worst: int | None = None
    prompt: int | None = None  # the number of their prompt


LISTED = """
with listed as (
    select id, success, reward, row_number() over (order by {order}) as place
    from trajectories where prompt_group_id = :group
)
"""


def prompt_group(
    connection: sqlite3.Connection, row: dict[str, Any], order: str = BEST_FIRST, also: int | None = None
) -> Group | None:
    """Return the prompt group of a trajectory's row in an order given as SQL, or None where it belongs to none.

    A large group is shown around the trajectory that was asked for, with the one of `also` wherever it stands.
    """
    if row["prompt_group_id"] is None:
        return None
    listed = LISTED.format(order=order)
    trajectories, scored, successes, place = connection.execute(
        f"""
        {listed}
        select count(*), count(success), ifnull(sum(success), 0), (select place from listed where id = :id) from listed
        """,
        {"group": row["prompt_group_id"], "id": row["id"]},
    ).fetchone()
    before = max(0, min((place or 1) - MOST_SIBLINGS // 2, trajectories - MOST_SIBLINGS))
    found = connection.execute(
        f"""
        {listed}
        select id, place, success, reward from listed
        where place between :before + 1 and :before + :most or id = :also order by place
        """,
        {"group": row["prompt_group_id"], "most": MOST_SIBLINGS, "before": before, "also": also},
    )
    siblings = [Sibling(*sibling) for sibling in found]
    ends = best_and_worst(connection, row["prompt_group_id"])
    prompt = prompt_of_trajectory(connection, row["id"])
    return Group(siblings, trajectories, scored, successes, place, *ends, prompt)


def best_and_worst(connection: sqlite3.Connection, group: int | None) -> tuple[int | None, int | None]:
    """Return the trajectories with the highest and the lowest reward, or None for both where there is no such pair."""
    best, worst, differ = connection.execute(
        f"select {ENDS}, max(reward) > min(reward) from trajectories where prompt_group_id = :group", {"group": group}
    ).fetchone()
    return (best, worst) if differ else (None, None)


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
