"""The runs and rows that an export is of: what the visitor sees of a table, as Datasette itself filters it."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from datasette.utils.asgi import BadRequest, Forbidden, Request

from rltracer_sqlite.export import TableRows, TraceRunSpec
from rltracer_sqlite.index.queries import runs

from . import compat
from .access import PLUGIN, may_view
from .bounds import ask
from .export_options import asked_split, filters
from .indexes import file_name
from .records import roots_of

if TYPE_CHECKING:
    from datasette.app import Datasette

MADE_OF = ("trajectories", "runs", "shards", "prompt_groups", "prompts")
IDENTITY_FREE = {
    "host",
    "connection",
    "content-length",
    "content-type",
    "accept",
    "accept-encoding",
    "transfer-encoding",
}


async def run_specs(datasette: Datasette, request: Request, database: str, table: str) -> list[TraceRunSpec]:
    """Return the runs that a table's filtered rows belong to, restricted to these rows.

    Raises Forbidden where the visitor may not see the table, or what its rows are about.
    """
    await may_read(datasette, request, database, table)
    attached = datasette.databases[database]
    if attached.path is None:
        raise BadRequest("This database is in memory only; an export reads its index from a file.")
    config = compat.plugin_config(datasette, PLUGIN, database)
    asked = {
        "split": asked_split(request),
        "roots": roots_of(datasette, database),
        "index_name": file_name(datasette, database),
    }
    known = await ask(datasette, database, runs)
    chosen = filters(request)
    if not chosen:  # the whole table: no need to page through it
        specs = [_spec(attached.path, run, config, asked, None) for run in known]
    else:
        by_run = await _chosen_rows(datasette, request, database, table, chosen)
        found = [run for run in known if run.id in by_run]
        specs = [_spec(attached.path, run, config, asked, TableRows(table, by_run[run.id])) for run in found]
    if not specs:
        raise BadRequest("No row of the table passes its filters, so there is nothing to export.")
    return specs


async def may_read(datasette: Datasette, request: Request, database: str, table: str) -> None:
    """Raise Forbidden where the visitor may not see the table, or what training data is made of."""
    await may_view(datasette, request, database, table, *MADE_OF)


def _spec(path: str, run: Any, config: dict[str, Any], asked: dict[str, Any], only: TableRows | None) -> TraceRunSpec:
    # Where a run's RL data lies is for the owner of the server to say, never for a visitor.
    data = config.get("rl_data") or {}
    return TraceRunSpec.from_index(Path(path), run.id, only=only, rl_data_path=data.get(run.name), **asked)


async def _chosen_rows(
    datasette: Datasette, request: Request, database: str, table: str, chosen: list[tuple[str, str]]
) -> dict[int, Sequence[int]]:
    """Return the ids of the rows that pass, by their run: asked page by page of Datasette itself, as the visitor."""
    headers = {name: value for name, value in request.headers.items() if name not in IDENTITY_FREE}
    fixed = [("_size", "max"), ("_shape", "objects"), ("_col", "id"), ("_col", "run_id")]
    quiet = [("_nofacet", "1"), ("_nosuggest", "1"), ("_nocount", "1")]
    url = datasette.urls.table(database, table, format="json")
    by_run: dict[int, array[int]] = {}
    following = None
    while True:
        pairs = [*chosen, *fixed, *quiet, *([("_next", following)] if following else [])]
        response = await datasette.client.request(
            "GET", f"{url}?{urlencode(pairs)}", avoid_path_rewrites=True, headers=headers
        )
        if response.status_code == 403:
            raise Forbidden("You may not view these rows.")
        if response.status_code != 200:
            raise BadRequest(f"Datasette refuses these filters: {_error(response.status_code, response.text)}")
        page = response.json()
        for row in page["rows"]:  # 0.65 adds columns that were not asked for
            by_run.setdefault(row["run_id"], array("q")).append(row["id"])
        following = page.get("next")
        if not following:
            return dict(by_run)


def _error(status: int, text: str) -> str:
    try:
        return str(json.loads(text).get("error"))[:500]
    except ValueError:
        return f"status {status}"
