"""What leads from Datasette's own pages to those of an index: entries of menus, and a line at the top of a page."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from markupsafe import Markup

from . import compat
from .access import MOST_INDEXES
from .addresses import export_url, overview_url, search_url
from .browse_config import browse_url, browsed_database
from .compat import Actor
from .export_options import TABLES, filters
from .indexes import is_known_index, is_rollout_index
from .text import visible

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.jump import JumpSQL
    from datasette.utils.asgi import Request

LABEL = "Rollouts"
TOP = '<p class="rltracer-top" style="font-size: 1.2em; font-weight: bold">{links}<small>{words}</small></p>'
SCRIPT = 'document.querySelector("section.content h1, .page-header").insertAdjacentHTML("afterend", {line});'


async def menu_entries(datasette: Datasette, actor: Actor) -> list[dict[str, str]]:
    """Return an entry for the overview of each index that the visitor may see."""
    return [{"href": url, "label": label} for label, url in await _overviews(datasette, actor)]


async def jump_entries(datasette: Datasette, actor: Actor) -> list[JumpSQL]:
    """Return the same for the jump menu of Datasette 1.0."""
    return [
        compat.jump_item(label, url, "Runs, steps, prompt groups and trajectories")
        for label, url in await _overviews(datasette, actor)
    ]


async def database_entries(datasette: Datasette, actor: Actor, database: str) -> list[dict[str, str]]:
    """Return the entries of a database's menu, where the database is an index."""
    if not await is_rollout_index(datasette, database) or not await _may_read(datasette, actor, database):
        return []
    return [
        {"href": overview_url(datasette, database), "label": LABEL},
        {"href": search_url(datasette, database), "label": "Search the rollouts"},
    ]


async def table_entries(
    datasette: Datasette, actor: Actor, database: str, table: str, request: Request | None
) -> list[dict[str, str]]:
    """Return the entries of a table's or a view's menu: those of its database, and the export under its filters."""
    entries = await database_entries(datasette, actor, database)
    if entries:
        pairs = filters(request) if request is not None and table in TABLES else []
        url = export_url(datasette, database, table if table in TABLES else TABLES[0], pairs)
        entries.append({"href": url, "label": "Export training data"})
    return entries


async def top_line(datasette: Datasette, actor: Actor, database: str | None = None) -> str:
    """Return a line of HTML that leads to the overview of a database, or of each index; "" where there is none."""
    if database is not None and not await is_rollout_index(datasette, database):
        return ""
    known = [database] if database is not None else list(datasette.databases)
    found = await _overviews(datasette, actor, known)
    browsed = browsed_database(datasette)
    if browsed is not None and browsed in known and await _may_read(datasette, actor, browsed):
        found.insert(0, ("Runs to read", browse_url(datasette, browsed)))
    if not found:
        return ""
    links = Markup(" · ").join(Markup('<a href="{}">{}</a>').format(url, visible(label)) for label, url in found)
    words = "" if len(found) > 1 else " with their runs, steps, prompt groups and trajectories"
    return str(Markup(TOP).format(links=links, words=words))


def top_script(
    datasette: Datasette, request: Request | None, view_name: str, database: str | None
) -> Callable[[], Awaitable[str]] | None:
    """Return what gives the script by which 0.65, which has no hook for the top of a page, gets that line there.

    None on other pages, which a script that does nothing would only burden.
    """
    if compat.HAS_TOP_HOOKS or view_name not in ("index", "database") or request is None:
        return None

    async def script() -> str:
        line = await top_line(datasette, request.actor, database if view_name == "database" else None)
        return SCRIPT.format(line=json.dumps(line).replace("<", "\\u003c")) if line else ""

    return script


async def _overviews(datasette: Datasette, actor: Actor, names: Iterable[str] | None = None) -> list[tuple[str, str]]:
    # Menus stand on every page, so a database that has not been met is not asked here.
    asked = datasette.databases if names is None else names
    known = [name for name in asked if is_known_index(datasette, name)][:MOST_INDEXES]
    allowed = [name for name in known if await _may_read(datasette, actor, name)]
    return [(LABEL if len(allowed) == 1 else f"{LABEL}: {name}", overview_url(datasette, name)) for name in allowed]


async def _may_read(datasette: Datasette, actor: Actor, database: str) -> bool:
    return await compat.first_hidden(datasette, actor, database, "trajectories") is None
