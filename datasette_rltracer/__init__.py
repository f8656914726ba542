"""The Datasette plugin: what an index means, and the conversations behind its rows.

Only hook arguments that Datasette 0.65 and 1.0 both offer are named. A hook that one of them lacks is never
called there.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from datasette import hookimpl

from rltracer_sqlite import amounts
from rltracer_sqlite.charts import provide_square_root

from . import (
    blocks,
    browse_pages,
    charts,
    compare_page,
    edge,
    export_formats,
    export_page,
    facets,
    find_marks,
    group_page,
    hosts,
    indexes,
    kept,
    live,
    menus,
    missing,
    overview_page,
    prompt_page,
    run_page,
    search_page,
    step_page,
    table_links,
    text,
    trajectory_page,
)

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.facets import Facet
    from datasette.jump import JumpSQL
    from datasette.utils.asgi import Request, Response
    from jinja2 import Environment
    from markupsafe import Markup

    from .compat import Actor
    from .edge import Route
    from .hosts import App
    from .table_links import TableRow

    Entries = list[dict[str, str]]  # of a menu: the href and the label of each


@hookimpl
def startup(datasette: Datasette) -> Callable[[], Awaitable[None]]:
    return lambda: indexes.find_indexes(datasette)


@hookimpl
def get_metadata(datasette: Datasette, key: str | None, database: str | None, table: str | None) -> dict[str, Any]:
    return indexes.described_metadata(datasette, key, database)


@hookimpl(trylast=True)  # Datasette's own functions are there by then
def prepare_connection(conn: sqlite3.Connection) -> None:
    provide_square_root(conn)
    indexes.prepare_index(conn)


@hookimpl
def asgi_wrapper(datasette: Datasette) -> Callable[[App], App]:
    return hosts.checked_host(datasette)


@hookimpl(specname="asgi_wrapper")
def asgi_wrapper_of_files() -> Callable[[App], App]:
    return kept.kept_by_browsers


@hookimpl
def register_output_renderer(datasette: Datasette) -> list[dict[str, Any]]:
    return export_formats.renderers()


@hookimpl
def register_facet_classes() -> list[type[Facet]]:
    return [facets.PassRateFacet, facets.OutcomeFacet, facets.RecordedFacet]


@hookimpl
def render_cell(
    row: TableRow, value: Any, column: str, table: str | None, database: str, datasette: Datasette
) -> Awaitable[Markup | None] | None:
    return table_links.cell_link(datasette, database, table, column, row, value)


@hookimpl
def extra_css_urls(datasette: Datasette, database: str | None, table: str | None, view_name: str | None) -> list[str]:
    return table_links.table_files(datasette, database, table, view_name, "tables.css")


@hookimpl
def extra_js_urls(
    datasette: Datasette, database: str | None, table: str | None, view_name: str | None
) -> list[dict[str, Any]]:
    urls = table_links.table_files(datasette, database, table, view_name, "tables.js")
    return [{"url": url, "module": True} for url in urls]


@hookimpl
def row_actions(datasette: Datasette, database: str, table: str, row: TableRow) -> Awaitable[Entries] | None:
    return table_links.row_links(datasette, database, table, row)


@hookimpl
def register_routes(datasette: Datasette) -> list[Route]:
    return edge.guarded(
        [
            *overview_page.routes(),
            *run_page.routes(),
            *step_page.routes(),
            *group_page.routes(),
            *prompt_page.routes(),
            *trajectory_page.routes(),
            *live.routes(),
            *charts.routes(),
            *export_page.routes(),
            *search_page.routes(),
            *compare_page.routes(),
            *browse_pages.routes(datasette),
        ]
    )


@hookimpl
def handle_exception(
    datasette: Datasette, request: Request, exception: Exception
) -> Callable[[], Awaitable[Response | None]]:
    return lambda: missing.answer(datasette, request, exception)


@hookimpl
def menu_links(datasette: Datasette, actor: Actor) -> Callable[[], Awaitable[Entries]]:
    return lambda: menus.menu_entries(datasette, actor)


@hookimpl
def jump_items_sql(datasette: Datasette, actor: Actor) -> Callable[[], Awaitable[list[JumpSQL]]]:
    return lambda: menus.jump_entries(datasette, actor)


@hookimpl
def database_actions(datasette: Datasette, actor: Actor, database: str) -> Callable[[], Awaitable[Entries]]:
    return lambda: menus.database_entries(datasette, actor, database)


@hookimpl
def table_actions(
    datasette: Datasette, actor: Actor, database: str, table: str, request: Request | None
) -> Callable[[], Awaitable[Entries]]:
    return lambda: menus.table_entries(datasette, actor, database, table, request)


@hookimpl
def view_actions(
    datasette: Datasette, actor: Actor, database: str, view: str, request: Request | None
) -> Callable[[], Awaitable[Entries]]:
    return lambda: menus.table_entries(datasette, actor, database, view, request)


@hookimpl
def top_homepage(datasette: Datasette, request: Request) -> Callable[[], Awaitable[str]]:
    return lambda: menus.top_line(datasette, request.actor)


@hookimpl
def top_database(datasette: Datasette, request: Request, database: str) -> Callable[[], Awaitable[str]]:
    return lambda: menus.top_line(datasette, request.actor, database)


@hookimpl
def extra_body_script(
    datasette: Datasette, request: Request | None, view_name: str, database: str | None
) -> Callable[[], Awaitable[str]] | None:
    return menus.top_script(datasette, request, view_name, database)


@hookimpl
def prepare_jinja2_environment(env: Environment) -> None:
    env.filters["rltracer_found"] = find_marks.found
    env.filters["rltracer_visible"] = text.visible
    env.filters["rltracer_exact"] = text.exact
    env.filters["rltracer_formatted"] = blocks.formatted
    env.filters["rltracer_plain"] = text.plain
    env.filters["rltracer_cut"] = amounts.shortened_name


def _make_known() -> None:
    """Have Datasette look for these hooks once more, where it saw this module before it had any.

    Datasette loads its plugins with the first of its modules that needs them: where that was imported from here, it has
    registered a module that was half done, and would serve no page of it.
    """
    from datasette.plugins import pm

    module = sys.modules[__name__]
    name = pm.get_name(module)
    if name is not None and not pm.get_hookcallers(module):
        pm.unregister(module)
        pm.register(module, name=name)


_make_known()
