"""Which two trajectories are compared where one of them or their group is given: the best of a group and the worst."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from datasette.utils.asgi import BadRequest, Response

from rltracer_sqlite.index.queries import trajectory_row

from .addresses import compare_url, group_url
from .bounds import ask
from .missing import NotThere, no_group, no_trajectory
from .siblings import best_and_worst

if TYPE_CHECKING:
    from datasette.app import Datasette


async def usual_pair(datasette: Datasette, database: str, group: int | None, one: int | None) -> Response:
    """Lead to the best of a group beside its worst, or beside the trajectory that is given."""

    def find(connection: sqlite3.Connection) -> tuple[int | None, int | None]:
        return _ends(connection, group, one)

    best, worst = await ask(datasette, database, find)
    if best is None or worst is None:
        raise await _no_pair(datasette, database, group, one)
    pair = (best, worst) if one is None else (one, worst if one == best else best)
    return Response.redirect(compare_url(datasette, database, *pair))


async def _no_pair(datasette: Datasette, database: str, group: int | None, one: int | None) -> NotThere:
    """Return why there is no pair: no such group or trajectory, or none of its rewards differ."""

    def find(connection: sqlite3.Connection) -> int | None:
        if group is None:
            row = trajectory_row(connection, one or 0)
            known: int | None = row["prompt_group_id"] if row is not None else -1
            return known
        found = connection.execute("select id from prompt_groups where id = ?", (group,)).fetchone()
        return int(found[0]) if found else -1

    known = await ask(datasette, database, find)
    if known == -1:
        return await (
            no_trajectory(datasette, database, one or 0) if group is None else no_group(datasette, database, group)
        )
    ways = [] if known is None else [(f"prompt group {known}", group_url(datasette, database, known))]
    sentence = "There are no two trajectories of different reward in this prompt group to compare."
    return NotThere(sentence, database, ways)


def _ends(connection: sqlite3.Connection, group: int | None, one: int | None) -> tuple[int | None, int | None]:
    if group is not None:
        return best_and_worst(connection, group)
    if one is None:
        raise BadRequest("Which two trajectories? Write compare?a=1&b=2, or compare?group=1.")
    return best_and_worst(connection, (trajectory_row(connection, one) or {}).get("prompt_group_id"))
