"""Entries of Datasette's menus that lead to the pages of an index."""

from __future__ import annotations

from typing import Any

from . import compat, export
from .addresses import overview_url, own_url
from .indexes import is_known_index, is_rollout_index

MOST_INDEXES = 20
LABEL = "Rollouts"


async def menu_entries(datasette: Any, actor: Any) -> list[dict[str, str]]:
    """Return an entry for the overview of each index that the visitor may see."""
    return [{"href": url, "label": label} for label, url in await _overviews(datasette, actor)]


async def jump_entries(datasette: Any, actor: Any) -> list[Any]:
    """Return the same for the jump menu of Datasette 1.0."""
    return [
        compat.jump_item(label, url, "Runs, steps, prompt groups and trajectories")
        for label, url in await _overviews(datasette, actor)
    ]


async def database_entries(datasette: Any, actor: Any, database: str) -> list[dict[str, str]]:
    """Return the entries of a database's menu, where the database is an index."""
    if not await is_rollout_index(datasette, database) or not await _may_read(datasette, actor, database):
        return []
    return [
        {"href": overview_url(datasette, database), "label": LABEL},
        {"href": own_url(datasette, database, "search"), "label": "Search the rollouts"},
    ]


async def table_entries(datasette: Any, actor: Any, database: str, table: str, request: Any) -> list[dict[str, str]]:
    """Return the entries of a table's or a view's menu: those of its database, and the export of its rows."""
    entries = await database_entries(datasette, actor, database)
    return entries + await export.table_entries(datasette, actor, database, table, request)


async def _overviews(datasette: Any, actor: Any) -> list[tuple[str, str]]:
    # Menus stand on every page, so a database that has not been met is not asked here.
    known = [name for name in datasette.databases if is_known_index(datasette, name)][:MOST_INDEXES]
    allowed = [name for name in known if await _may_read(datasette, actor, name)]
    return [(LABEL if len(allowed) == 1 else f"{LABEL}: {name}", overview_url(datasette, name)) for name in allowed]


async def _may_read(datasette: Any, actor: Any, database: str) -> bool:
    return await compat.can_view_table(datasette, actor, database, "trajectories")
