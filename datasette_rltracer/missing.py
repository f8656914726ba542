"""What is answered in place of a page that is not there: what was asked for, and links to the nearest of what there is.

A page calls one of these after it has asked whether the visitor may see the tables that they name.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from datasette.utils.asgi import Base400, Forbidden, NotFound, Request, Response

from .access import permitted_index_at, permitted_indexes
from .addresses import group_url, overview_url, prompt_url, run_url, step_url, trajectory_url
from .bounds import ask
from .browse_config import browse_url, browsed_database
from .edge import HEADERS
from .frame import render, step_words
from .text import plain

if TYPE_CHECKING:
    from datasette.app import Datasette

Way = tuple[str, str]  # words, address
Places = Sequence[int | None]  # the first, the last, and those before and after what was asked for
OWN = "/-/rltracer"
MOST_RUNS = 10
LONGEST_ASKED = 80  # characters of what stood in the address

RUNS = "select id, substr(name, 1, 200) from runs order by indexed_at desc, id desc limit ?"
NEAREST = """
select min({column}), max({column}), max(case when {column} < :asked then {column} end),
    min(case when {column} > :asked then {column} end)
from {table} where {where}
"""
# By the primary key each of the four is one look-up.
NEAREST_ID = """
select (select min(id) from {table}), (select max(id) from {table}),
    (select max(id) from {table} where id < :asked), (select min(id) from {table} where id > :asked)
"""


class NotThere(NotFound):
    """What an address names is not there; `ways` lead to what is, in this database."""

    def __init__(self, sentence: str, database: str | None = None, ways: Sequence[Way] = ()) -> None:
        super().__init__(sentence)
        self.database, self.ways = database, list(ways)


async def no_run(datasette: Datasette, database: str, asked: int | str) -> NotThere:
    """Return what to raise for a run that there is not, by its number or its name; the runs are named."""
    runs = await ask(datasette, database, _runs)
    said = f"number {asked}" if isinstance(asked, int) else f"named {_shown(asked)}"
    sentence = f"This index has no run {said}." if runs else "No run is in this index yet."
    return NotThere(sentence, database, _to_runs(datasette, database, runs))


async def no_step(datasette: Datasette, database: str, run: int, step: int | None) -> NotThere:
    """Return what to raise for a step that a run has not: its first, its last and the nearest ones are named."""
    name, found = await _near(datasette, database, run, ("steps", "step", step))
    if name is None:
        return await no_run(datasette, database, run)
    ways = nearest(found, lambda number: (step_words(number), step_url(datasette, database, run, number)))
    ways.append((f"all steps of {name}", f"{run_url(datasette, database, run)}#steps"))
    what = "trajectory without a step" if step is None else step_words(step)
    return NotThere(f"The run {name} has no {what}.", database, ways)


async def no_group(datasette: Datasette, database: str, group: int) -> NotThere:
    """Return what to raise for a prompt group that an index has not; the nearest numbers and the runs are named."""
    return await _no_row(
        datasette,
        database,
        ("prompt_groups", "prompt group", group),
        lambda number: group_url(datasette, database, number),
    )


async def no_prompt(datasette: Datasette, database: str, run: int, prompt: int) -> NotThere:
    """Return what to raise for a prompt that a run has not: its first, its last and the nearest ones are named."""
    name, found = await _near(datasette, database, run, ("prompt_groups", "prompt_id", prompt))
    if name is None:
        return await no_run(datasette, database, run)
    ways = nearest(found, lambda number: (f"prompt {number}", prompt_url(datasette, database, run, number)))
    ways.append((f"the hardest prompts of {name}", f"{run_url(datasette, database, run)}#hardest"))
    return NotThere(f"The run {name} has no prompt {prompt}.", database, ways)


async def _near(
    datasette: Datasette, database: str, run: int, asked: tuple[str, str, int | None]
) -> tuple[str | None, Places]:
    """Return the name of a run, None where there is none, and its numbers around one: (table, column, number)."""
    table, column, number = asked

    def find(connection: sqlite3.Connection) -> tuple[tuple[str] | None, Places]:
        name = connection.execute("select substr(name, 1, 200) from runs where id = ?", (run,)).fetchone()
        query = NEAREST.format(table=table, column=column, where="run_id = :run")
        # Without a number in the address nothing is nearer than the first.
        return name, connection.execute(query, {"run": run, "asked": number}).fetchone()

    name, found = await ask(datasette, database, find)
    return (None if name is None else plain(name[0])), found


async def no_trajectory(datasette: Datasette, database: str, trajectory: int) -> NotThere:
    """Return what to raise for a trajectory that an index has not; the nearest numbers and the runs are named."""
    return await _no_row(
        datasette,
        database,
        ("trajectories", "trajectory", trajectory),
        lambda number: trajectory_url(datasette, database, number),
    )


async def no_recorded_id(datasette: Datasette, database: str, run: str, uid: str) -> NotThere:
    """Return what to raise for a permanent link that leads nowhere; `run` is a name, else a number."""

    def find(connection: sqlite3.Connection) -> tuple[int, str] | None:
        query = "select id, substr(name, 1, 200) from runs where name = :run or cast(id as text) = :run"
        found: tuple[int, str] | None
        found = connection.execute(f"{query} order by name = :run desc", {"run": run}).fetchone()
        return found

    found = await ask(datasette, database, find)
    if found is None:
        return await no_run(datasette, database, run)
    ways = _to_runs(datasette, database, [found])
    return NotThere(f"The run {plain(found[1])} has no trajectory with the id {_shown(uid)}.", database, ways)


def nearest(found: Places, way: Callable[[int], Way]) -> list[Way]:
    """Return the ways to the first, the last, and those before and after what was asked for, each once, in order."""
    first, last, before, after = found
    places = ((before, "the one before"), (after, "the one after"), (first, "the first"), (last, "the last"))
    said = {number: words for number, words in places if number is not None}
    return [(f"{words}, {said[number]}", url) for number in sorted(said) for words, url in [way(number)]]


async def answer(datasette: Datasette, request: Request, exception: Exception) -> Response | None:
    """Answer a visitor who asked for a page of ours that is not there; None where that is for Datasette to do."""
    path = request.scope.get("route_path") or request.path
    if not isinstance(exception, NotFound) or path.endswith(".json") or not f"{path}/".startswith(f"{OWN}/"):
        return None
    try:
        missing = exception if isinstance(exception, NotThere) else await _elsewhere(datasette, request, exception)
    except (Base400, sqlite3.Error):
        return None
    ways = list(missing.ways)
    if missing.database is not None:
        if browsed_database(datasette) == missing.database:
            ways.append(("all runs of the folder", browse_url(datasette, missing.database)))
        ways.append(("all runs of this index", overview_url(datasette, missing.database)))
    context = {"title": "not found", "sentence": str(missing), "ways": ways}
    response = await render(datasette, request, missing.database, "missing.html", context, 404)
    response.headers = {**HEADERS, **(response.headers or {})}
    return response


async def _elsewhere(datasette: Datasette, request: Request, exception: NotFound) -> NotThere:
    """Return what there is in place of a database that is no index, or of an address that no page of ours has."""
    path = (request.scope.get("route_path") or request.path).removeprefix(OWN).strip("/")
    # Datasette's own sentence is about its pages of databases and tables, where nobody looked for one.
    sentence = str(exception) if str(exception).endswith(".") else "There is no such page."
    tables = ("runs", "steps", "shards")  # of the overview
    try:
        return NotThere(sentence, await permitted_index_at(datasette, request, path.partition("/")[0], *tables))
    except NotFound as error:
        sentence = str(error) if path else "Which index?"
    except Forbidden:
        pass
    found = await permitted_indexes(datasette, request, *tables)
    ways = [(f"the index {plain(name)}", overview_url(datasette, name)) for name in found]
    return NotThere(sentence if ways or path else "No index of rollouts that you may see is served here.", None, ways)


async def _no_row(
    datasette: Datasette, database: str, asked: tuple[str, str, int], url: Callable[[int], str]
) -> NotThere:
    table, what, number = asked

    def find(connection: sqlite3.Connection) -> tuple[Places, list[tuple[int, str]]]:
        return connection.execute(NEAREST_ID.format(table=table), {"asked": number}).fetchone(), _runs(connection)

    found, runs = await ask(datasette, database, find)
    ways = nearest(found, lambda other: (f"{what} {other}", url(other)))
    return NotThere(f"This index has no {what} {number}.", database, ways + _to_runs(datasette, database, runs))


def _runs(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    return connection.execute(RUNS, (MOST_RUNS,)).fetchall()


def _to_runs(datasette: Datasette, database: str, runs: Sequence[tuple[int, str]]) -> list[Way]:
    return [(f"the run {plain(name)}, number {number}", run_url(datasette, database, number)) for number, name in runs]


def _shown(text: str) -> str:
    shown = plain(text)
    return shown if len(shown) <= LONGEST_ASKED else f"{shown[:LONGEST_ASKED]}…"
