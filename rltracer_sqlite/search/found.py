"""The trajectories that a search finds: one question in SQL, for the page, the command and Python."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..index.queries import trajectory_row
from .hits import Hit, read_hits
from .scope import SearchScope
from .tables import TEXT_TABLE, Coverage, text_coverage

if TYPE_CHECKING:
    from ..roots import Roots

FOUND = f"id in (select rowid from {TEXT_TABLE} where {TEXT_TABLE} match :match)"
ROWS = """
select
    id, uid, run_id, (select name from runs r where r.id = run_id) as run, prompt_group_id, step, split, env, reward,
    success, turns, stop_condition, byte_length, preview
from trajectories where {where} order by {order} limit {size} offset {start}
"""
SUMMARY = """
select
    count(*) as trajectories, count(success) as scored, ifnull(sum(success), 0) as successes,
    count(distinct prompt_group_id) as prompt_groups,
    json_group_array(distinct step) filter (where step is not null) as found_steps
from trajectories where {where}
"""
NEWEST_FIRST = "id desc"


def found_rows(where: str, size: int, start: int = 0, order: str = NEWEST_FIRST) -> str:
    """Return the query for the trajectories that `:match` finds among those that fulfil a condition, in an order."""
    return ROWS.format(where=f"{FOUND} and {where}", order=order, size=size, start=start)


def found_summary(where: str) -> str:
    """Return the query for how many trajectories `:match` finds among those that fulfil a condition, and of what."""
    return SUMMARY.format(where=f"{FOUND} and {where}")


def find(
    connection: sqlite3.Connection, roots: Roots, query: str, scope: SearchScope, limit: int | None
) -> Iterator[tuple[dict[str, Any], Hit]]:
    """Yield the row of each trajectory that a FTS5 query finds, the newest first, and what it matches in its record."""
    where, parameters = scope.where()
    # Only the ids are held, and no question stays open, which would keep a writer waiting for whoever reads this.
    sql = f"select id from ({found_rows(where, -1 if limit is None else limit)})"
    for (number,) in connection.execute(sql, {**parameters, "match": query}).fetchall():
        if (row := trajectory_row(connection, number)) is not None:
            yield row, read_hits(connection, roots, [row], query)[0]


def count_found(connection: sqlite3.Connection, query: str, scope: SearchScope) -> int:
    """Return how many trajectories a FTS5 query finds among those that are asked for."""
    where, parameters = scope.where()
    return int(connection.execute(found_summary(where), {**parameters, "match": query}).fetchone()[0])


def searched(connection: sqlite3.Connection, scope: SearchScope) -> Coverage:
    """Return how many of the trajectories that are asked for can be found, and what is with the others."""
    return text_coverage(connection, *scope.where())
