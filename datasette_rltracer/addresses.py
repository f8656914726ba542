"""The addresses of our pages and of Datasette's own, under any base_url, and the numbers that stand in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from datasette.utils import tilde_encode
from datasette.utils.asgi import BadRequest

from rltracer_sqlite.index.derived import VALUES

if TYPE_CHECKING:
    from datasette.app import Datasette

NO_STEP = "none"  # stands in an address for the trajectories without a step
LARGEST_ID = 2**63 - 1

# Patterns of addresses: the database that every page of ours is of, and below it a step of a run.
DATABASE = r"^/-/rltracer/(?P<database>[^/]+)"
STEP_PATH = rf"/step/(?P<run>\d+)/(?P<step>-?\d+|{NO_STEP})"


def overview_url(datasette: Datasette, database: str, **query: Any) -> str:
    """Return the address of the page of all runs of an index."""
    return own_url(datasette, database, "", query.items())


def run_url(datasette: Datasette, database: str, run: int, **query: Any) -> str:
    """Return the address of a run's page."""
    return own_url(datasette, database, f"run/{int(run)}", query.items())


def step_url(
    datasette: Datasette, database: str, run: int, step: int | None, pairs: Iterable[tuple[str, Any]] = ()
) -> str:
    """Return the address of the page of a step of a run; a step of None holds the trajectories without one."""
    return own_url(datasette, database, f"step/{int(run)}/{NO_STEP if step is None else int(step)}", pairs)


def group_url(datasette: Datasette, database: str, group: int, pairs: Iterable[tuple[str, Any]] = ()) -> str:
    """Return the address of a prompt group's page; `pairs` are the filters that its neighbours pass."""
    return own_url(datasette, database, f"group/{int(group)}", pairs)


def prompt_url(
    datasette: Datasette, database: str, run: int, prompt: int, pairs: Iterable[tuple[str, Any]] = ()
) -> str:
    """Return the address of the page of a prompt over all steps of a run; `pairs` choose a split, an environment."""
    return own_url(datasette, database, f"prompt/{int(run)}/{int(prompt)}", pairs)


def trajectory_url(
    datasette: Datasette,
    database: str,
    trajectory: int,
    ending: str = "",
    pairs: Iterable[tuple[str, Any]] = (),
    **query: Any,
) -> str:
    """Return the address of a trajectory's page; `ending` is "", ".json" or "/record". Unset queries are left out."""
    return own_url(datasette, database, f"trajectory/{int(trajectory)}{ending}", [*pairs, *query.items()])


def permanent_url(datasette: Datasette, database: str, run: str, uid: str, **query: Any) -> str:
    """Return the address that stays good when the index is made again: by a run's name and a recorded id."""
    return own_url(datasette, database, f"t/{tilde_encode(run)}/{tilde_encode(uid)}", query.items())


def compare_url(datasette: Datasette, database: str, left: int, right: int) -> str:
    """Return the address of the page of two trajectories side by side."""
    return own_url(datasette, database, "compare", [("a", left), ("b", right)])


def search_url(
    datasette: Datasette, database: str, text: str | None = None, pairs: Iterable[tuple[str, Any]] = ()
) -> str:
    """Return the address of the search for a text, among the trajectories that pass the filters of `pairs`."""
    return own_url(datasette, database, "search", [("q", text), *pairs])


def export_url(
    datasette: Datasette, database: str, table: str | None = None, pairs: Iterable[tuple[str, Any]] = ()
) -> str:
    """Return the address of the export page, for the rows of a table that pass the filters of `pairs`."""
    return own_url(datasette, database, "export", [("_table", table), *pairs])


def own_url(datasette: Datasette, database: str, path: str, pairs: Iterable[tuple[str, Any]] = ()) -> str:
    """Return the address of a page of ours; pairs without a value are left out of its query string."""
    route = tilde_encode(datasette.databases[database].route)
    query = urlencode([(name, value) for name, value in pairs if value is not None])
    address = str(datasette.urls.path(f"/-/rltracer/{route}/{path}"))
    return f"{address}?{query}" if query else address


def table_url(
    datasette: Datasette, database: str, table: str, pairs: Iterable[tuple[str, Any]] = (), **filters: Any
) -> str:
    """Return the address of a table's rows; a filter by None asks for null."""
    given = [(f"{name}__isnull", 1) if value is None else (name, value) for name, value in filters.items()]
    return f"{datasette.urls.table(database, table)}?{urlencode([*pairs, *given])}"


def errors_url(datasette: Datasette, database: str, run: int, step: int | None, **filters: Any) -> str:
    """Return the address of a step's trajectories that ended with an error, for whoever may ask in SQL.

    Some say that they failed, others name an error, and no filters of columns join the two.
    """
    return table_url(
        datasette, database, "trajectories", [("_where", VALUES["error"])], run_id=run, step=step, **filters
    )


def row_url(datasette: Datasette, database: str, table: str, key: int) -> str:
    """Return the address of the page of one row."""
    return str(datasette.urls.row(database, table, str(int(key))))


def integer(text: str) -> int:
    """Return a number in an address. Raises BadRequest where it is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise BadRequest("Not a number.")
    return min(int(text), LARGEST_ID)


def place(text: str | None) -> int | None:
    """Return a place in a list, such as the number of a message, or None where the text is none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 9 else None


def step_of(text: str) -> int | None:
    """Return the step that stands in an address."""
    if text == NO_STEP:
        return None
    return -integer(text[1:]) if text.startswith("-") else integer(text)
