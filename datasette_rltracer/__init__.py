"""The Datasette plugin: what an index means, and the conversations behind its rows.

Only hook arguments that Datasette 0.65 and 1.0 both offer are named. A hook that one of them lacks is never
called there.
"""

from __future__ import annotations

import sys

from datasette import hookimpl

from rltracer_sqlite.charts import provide_square_root

from . import (
    blocks,
    charts,
    compare,
    edge,
    export,
    export_page,
    facets,
    find_marks,
    group_page,
    hosts,
    indexes,
    links,
    live,
    menus,
    missing,
    overview,
    pages,
    run_page,
    search,
    serve,
    step_page,
    text,
)


@hookimpl
def startup(datasette):
    return lambda: indexes.find_indexes(datasette)


@hookimpl
def get_metadata(datasette, key, database, table):
    return indexes.described_metadata(datasette, key, database)


@hookimpl
def prepare_connection(conn):
    provide_square_root(conn)
    indexes.distrust_schema(conn)


@hookimpl
def asgi_wrapper(datasette):
    return hosts.checked_host(datasette)


@hookimpl
def register_output_renderer(datasette):
    return export.renderers()


@hookimpl
def register_facet_classes():
    return [facets.PassRateFacet]


@hookimpl
def render_cell(row, value, column, table, database, datasette):
    return links.cell_link(datasette, database, table, column, row, value)


@hookimpl
def extra_css_urls(datasette, database, view_name):
    return links.table_styles(datasette, database, view_name)


@hookimpl
def row_actions(datasette, database, table, row):
    return links.row_links(datasette, database, table, row)


@hookimpl
def register_routes(datasette):
    return edge.guarded(
        [
            *overview.routes(),
            *run_page.routes(),
            *step_page.routes(),
            *group_page.routes(),
            *pages.routes(),
            *live.routes(),
            *charts.routes(),
            *export_page.routes(),
            *search.routes(),
            *compare.routes(),
            *serve.routes(datasette),
        ]
    )


@hookimpl
def handle_exception(datasette, request, exception):
    return lambda: missing.answer(datasette, request, exception)


@hookimpl
def menu_links(datasette, actor):
    return lambda: menus.menu_entries(datasette, actor)


@hookimpl
def jump_items_sql(datasette, actor):
    return lambda: menus.jump_entries(datasette, actor)


@hookimpl
def database_actions(datasette, actor, database):
    return lambda: menus.database_entries(datasette, actor, database)


@hookimpl
def table_actions(datasette, actor, database, table, request):
    return lambda: menus.table_entries(datasette, actor, database, table, request)


@hookimpl
def view_actions(datasette, actor, database, view, request):
    return lambda: menus.table_entries(datasette, actor, database, view, request)


@hookimpl
def top_homepage(datasette, request):
    return lambda: menus.top_line(datasette, request.actor)


@hookimpl
def top_database(datasette, request, database):
    return lambda: menus.top_line(datasette, request.actor, database)


@hookimpl
def extra_body_script(datasette, request, view_name, database):
    return menus.top_script(datasette, request, view_name, database)


@hookimpl
def prepare_jinja2_environment(env):
    env.filters["rltracer_found"] = find_marks.found
    env.filters["rltracer_visible"] = text.visible
    env.filters["rltracer_exact"] = text.exact
    env.filters["rltracer_formatted"] = blocks.formatted
    env.filters["rltracer_plain"] = text.plain


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
