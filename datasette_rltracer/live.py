"""Whether what an open page shows has changed since: a small question that the page asks while it is looked at.

Whoever reads a file writes its row in the index, and those of the steps and the run that its trajectories count in. So
the version of a page is a digest of what it shows of those rows: names and rule, the numbers of steps, how far files
are read and, in the page's own words, what of them was not. A prompt group is few rows, and its version is a digest of
them. As long as nothing is written to the index nothing is counted again.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from datasette.utils import sqlite_timelimit
from datasette.utils.asgi import Request, Response

from .access import permitted_index
from .addresses import DATABASE, NO_STEP, STEP_PATH, integer, own_url, step_of
from .edge import Route
from .live_marks import Marks, group_marks, overview_marks, prompt_marks, run_marks, step_marks

if TYPE_CHECKING:
    from datasette.app import Datasette

MOST_KEPT = 1_000  # answers, until the next change of the index

State = dict[str, Any]  # `version`, None where it took too long to tell, and `trajectories`, which a person is told of


@dataclass
class Kept:
    """What a connection has answered since another one wrote to the index: SQLite counts that for each connection."""

    connection: sqlite3.Connection
    data_version: int
    states: dict[str, State] = field(default_factory=dict)


# By the database and the thread, each of which has a connection of its own.
_kept: WeakKeyDictionary[Datasette, dict[tuple[str, int], Kept]] = WeakKeyDictionary()


def routes() -> list[Route]:
    """Return the addresses of these answers and what gives them."""
    return [
        (DATABASE + r"/live$", overview_state),
        (DATABASE + r"/live/run/(?P<run>\d+)$", run_state),
        (f"{DATABASE}/live{STEP_PATH}$", step_state),
        (DATABASE + r"/live/group/(?P<group>\d+)$", group_state),
        (DATABASE + r"/live/prompt/(?P<run>\d+)/(?P<prompt>\d+)$", prompt_state),
    ]


async def overview_state(datasette: Datasette, request: Request) -> Response:
    """Answer with the state of an index."""
    database = await permitted_index(datasette, request, "runs", "steps", "shards")
    return _answer(await live_overview(datasette, database))


async def run_state(datasette: Datasette, request: Request) -> Response:
    """Answer with the state of a run."""
    database = await permitted_index(datasette, request, "runs", "steps", "shards")
    return _answer(await live_run(datasette, database, integer(request.url_vars["run"])))


async def step_state(datasette: Datasette, request: Request) -> Response:
    """Answer with the state of a step."""
    database = await permitted_index(datasette, request, "runs", "steps", "shards")
    run, step = integer(request.url_vars["run"]), step_of(request.url_vars["step"])
    return _answer(await live_step(datasette, database, run, step))


async def group_state(datasette: Datasette, request: Request) -> Response:
    """Answer with the state of a prompt group."""
    database = await permitted_index(datasette, request, "runs", "prompts", "prompt_groups")
    return _answer(await live_group(datasette, database, integer(request.url_vars["group"])))


async def prompt_state(datasette: Datasette, request: Request) -> Response:
    """Answer with the state of a prompt over all steps of a run."""
    database = await permitted_index(datasette, request, "runs", "steps", "shards", "prompt_groups")
    run, prompt = (integer(request.url_vars[name]) for name in ("run", "prompt"))
    return _answer(await live_prompt(datasette, database, run, prompt))


async def live_overview(datasette: Datasette, database: str) -> State:
    """Return the state of an index: `version`, `trajectories` and the `url` to ask again."""
    return await _state(datasette, database, "live", overview_marks)


async def live_run(datasette: Datasette, database: str, run: int) -> State:
    """Return the state of a run, as `live_overview` does."""
    return await _state(datasette, database, f"live/run/{run}", lambda connection: run_marks(connection, run))


async def live_step(datasette: Datasette, database: str, run: int, step: int | None) -> State:
    """Return the state of a step, as `live_overview` does."""
    path = f"live/step/{run}/{NO_STEP if step is None else step}"
    return await _state(datasette, database, path, lambda connection: step_marks(connection, run, step))


async def live_group(datasette: Datasette, database: str, group: int) -> State:
    """Return the state of a prompt group, as `live_overview` does."""
    return await _state(datasette, database, f"live/group/{group}", lambda connection: group_marks(connection, group))


async def live_prompt(datasette: Datasette, database: str, run: int, prompt: int) -> State:
    """Return the state of a prompt over all steps of a run, as `live_overview` does."""
    path = f"live/prompt/{run}/{prompt}"
    return await _state(datasette, database, path, lambda connection: prompt_marks(connection, run, prompt))


async def _state(datasette: Datasette, database: str, path: str, marks: Callable[[sqlite3.Connection], Marks]) -> State:
    of_server = _kept.setdefault(datasette, {})

    def find(connection: sqlite3.Connection) -> State:
        states = _states_of(of_server, database, connection)
        if path not in states:
            states[path] = _told(connection, marks, datasette.setting("sql_time_limit_ms"))
        return states[path]

    state = await datasette.databases[database].execute_fn(find)
    return {"url": own_url(datasette, database, path), **state}


def _states_of(
    of_server: dict[tuple[str, int], Kept], database: str, connection: sqlite3.Connection
) -> dict[str, State]:
    """Return what a connection has answered, nothing where the index was written to since."""
    # Asked first: what is written while the rest is counted makes for another number, and is counted the next time.
    data_version = connection.execute("pragma data_version").fetchone()[0]
    place = database, threading.get_ident()
    kept = of_server.get(place)
    is_old = kept is None or kept.connection is not connection or kept.data_version != data_version
    if kept is None or is_old or len(kept.states) >= MOST_KEPT:
        kept = of_server[place] = Kept(connection, data_version)
    return kept.states


def _told(connection: sqlite3.Connection, marks: Callable[[sqlite3.Connection], Marks], milliseconds: int) -> State:
    try:
        with sqlite_timelimit(connection, milliseconds):
            trajectories, shown = marks(connection)
    except sqlite3.OperationalError as error:
        if str(error) != "interrupted":
            raise
        return {"version": None, "trajectories": 0}
    return {"version": sha256(repr(shown).encode()).hexdigest()[:16], "trajectories": trajectories}


def _answer(state: State) -> Response:
    shown = {name: state[name] for name in ("version", "trajectories")}
    return Response.json(shown, headers={"cache-control": "no-store"})
