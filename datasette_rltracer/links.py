"""Where the cells of an index's tables lead, and the addresses of the plugin's own pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from datasette.utils import tilde_encode
from markupsafe import Markup

from .indexes import is_known_index, is_rollout_index
from .text import visible

STATIC = Path(__file__).parent / "static"
LONGEST_CELL = 400  # characters; a preview has no more, a recorded id may


def static_url(datasette: Any, name: str) -> str:
    """Return the address of a file of ours; it changes with the file, so that browsers do not keep an old one."""
    # Added and not formatted: the sum stays the kind of string that Datasette does not prefix again.
    return datasette.urls.static_plugins("datasette-rltracer", name) + f"?v={_version(name)}"  # type: ignore[no-any-return]


@cache
def _version(name: str) -> str:
    return sha256((STATIC / name).read_bytes()).hexdigest()[:10]


def table_styles(datasette: Any, database: str | None, view_name: str | None) -> list[str]:
    """Return the stylesheets of Datasette's own page: ours on the tables of an index."""
    if view_name == "table" and is_known_index(datasette, database):
        return [static_url(datasette, "tables.css")]
    return []


def trajectory_url(datasette: Any, database: str, trajectory: int, ending: str = "", **query: Any) -> str:
    """Return the address of a trajectory's page; `ending` is "", ".json" or "/record". Unset queries are left out."""
    given = {name: value for name, value in query.items() if value is not None}
    path = _own_url(datasette, database, f"trajectory/{int(trajectory)}{ending}")
    return f"{path}?{urlencode(given)}" if given else path


def permanent_url(datasette: Any, database: str, run: int, uid: str) -> str:
    """Return the address that stays good when the index is made again: by run and recorded id."""
    return _own_url(datasette, database, f"t/{int(run)}/{tilde_encode(uid)}")


def _own_url(datasette: Any, database: str, path: str) -> str:
    route = tilde_encode(datasette.databases[database].route)
    return str(datasette.urls.path(f"/-/rltracer/{route}/{path}"))


def table_url(datasette: Any, database: str, table: str, **filters: Any) -> str:
    """Return the address of a table's rows; a filter by None asks for null."""
    pairs = [(f"{name}__isnull", 1) if value is None else (name, value) for name, value in filters.items()]
    return f"{datasette.urls.table(database, table)}?{urlencode(pairs)}"


def row_url(datasette: Any, database: str, table: str, key: int) -> str:
    """Return the address of the page of one row."""
    return str(datasette.urls.row(database, table, str(int(key))))


def _filtered(table: str, **columns: str) -> Callable[..., str]:
    """Return a function from a row to the address of `table`, filtered by columns of that row."""
    return lambda datasette, database, row: table_url(
        datasette, database, table, **{name: _value(row, column) for name, column in columns.items()}
    )


def _trajectory(key: str) -> Callable[..., str | None]:
    def address(datasette: Any, database: str, row: Any) -> str | None:
        number = _value(row, key)
        return trajectory_url(datasette, database, number) if isinstance(number, int) else None

    return address


def _value(row: Any, column: str) -> Any:
    """Return a row's value; a foreign key that Datasette has expanded is a dictionary of value and label."""
    value = row[column]
    return value["value"] if isinstance(value, dict) else value


LINKS: Mapping[tuple[str, str], Callable[..., str | None]] = {
    ("trajectories", "uid"): _trajectory("id"),
    ("trajectories", "preview"): _trajectory("id"),
    ("annotations", "uid"): _trajectory("trajectory_id"),
    ("prompt_groups", "trajectories"): _filtered("trajectories", prompt_group_id="id"),
    ("prompts", "preview"): _filtered("prompt_groups", prompt_id="id"),
    ("steps", "trajectories"): _filtered("trajectories", run_id="run_id", step="step", split="split"),
    ("steps", "prompt_groups"): _filtered("prompt_groups", run_id="run_id", step="step", split="split"),
    ("prompt_pass_rates", "preview"): _filtered(
        "prompt_groups", prompt_id="prompt_id", run_id="run_id", split="split", env="env"
    ),
}


def cell_link(datasette: Any, database: str, table: str | None, column: str, row: Any, value: Any) -> Any:
    """Return a coroutine for a cell as a link, or None where the cell is not ours.

    `table` is None on pages of arbitrary SQL, which can make up any row, so those never get a link.
    """
    find_address = LINKS.get((table or "", column))
    if find_address is None:
        return None
    return _cell_link(datasette, database, find_address, row, value)


async def _cell_link(datasette: Any, database: str, find_address: Callable[..., Any], row: Any, value: Any) -> Any:
    if not await is_rollout_index(datasette, database):
        return None
    try:
        address = find_address(datasette, database, row)
    except (KeyError, IndexError):
        return None  # the visitor has left out the column that the link needs
    if address is None:
        return None
    text = str(value)
    return Markup('<a href="{}">{}</a>').format(
        address, visible(text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…")
    )


def row_links(datasette: Any, database: str, table: str, row: Any) -> Any:
    """Return a coroutine for the entries of a row's menu (Datasette 1.0), or None for other tables."""
    return _row_links(datasette, database, row) if table == "trajectories" else None


async def _row_links(datasette: Any, database: str, row: Any) -> list[dict[str, str]]:
    if not await is_rollout_index(datasette, database):
        return []
    return [{"href": trajectory_url(datasette, database, _value(row, "id")), "label": "Read the trajectory"}]
