"""The charts of a run: a fragment for a run's page, a page of all of them, a page of one, and what each draws from."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

from datasette.database import QueryInterrupted
from datasette.utils.asgi import BadRequest, Forbidden, NotFound, Request, Response
from markupsafe import Markup

from rltracer_sqlite.charts import CHARTS, ChartError, Filters, Query, load_spec, plan_query
from rltracer_sqlite.charts.data import Span, finite, span_query
from rltracer_sqlite.charts.figure import Figure, figure_of
from rltracer_sqlite.charts.render import chart_content
from rltracer_sqlite.charts.scoring import scoring_query, scoring_words
from rltracer_sqlite.charts.unread import Unread, unread_of, unread_query
from rltracer_sqlite.passrates import WINDOW_SIZES

from . import compat
from .access import permitted_index
from .addresses import DATABASE, integer, own_url, run_url, static_url
from .edge import Route
from .filter_names import refuse_unknown_options
from .filter_values import not_among
from .frame import render
from .missing import NotThere, no_run
from .queries import bounded, sql_url
from .selection import names_among, recorded
from .success_rules import parts_of
from .text import plain, visible

if TYPE_CHECKING:
    from datasette.app import Datasette

ADDRESS = DATABASE + r"/run/(?P<run>\d+)/charts"
DRAWN_FROM = ("runs", "steps", "shards", "step_values", "prompts", "prompt_groups", "prompt_windows", "trajectories")
# A page of one chart is wholly ours, so it can promise the browser that it loads nothing else.
STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:;"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
CHOICES = """
select 'split' as kind, split as value from steps
where run_id = :run_id and (split is not null or trajectories > 0) group by split
union all
select 'env', env from step_values where run_id = :run_id group by env
"""
MOST_CHOICES = 200
OPTIONS = ("split", "env", "step", "step__gte", "step__lte", "_window")


def routes() -> list[Route]:
    """Return the addresses of these pages and what answers them."""
    return [
        (ADDRESS + r"$", charts_page),
        (ADDRESS + r"/(?P<chart>[a-z_]+)$", chart_page),
        (ADDRESS + r"/(?P<chart>[a-z_]+)\.json$", chart_json),
    ]


async def charts_page(datasette: Datasette, request: Request) -> Response:
    """Answer with every chart of a run and a form for their filters."""
    database, run = await _permitted_run(datasette, request)
    address = run_url(datasette, database, run["id"])
    context = {
        "title": f"charts of {run['name']}",
        "trail": [(address, run["name"]), (_charts_url(datasette, database, Filters(run["id"])), "charts")],
        "run": run,
        "run_url": address,
        "charts": await charts_fragment(datasette, request, database, run["id"]),
        "styles": ["charts.css"],
    }
    return await render(datasette, request, database, "charts.html", context)


async def charts_fragment(datasette: Datasette, request: Request, database: str, run_id: int) -> Markup:
    """Return the form and the figures of a run's charts, for a page that the visitor may see.

    The filters of the request (`split`, `env`, `step__gte`, `step__lte`, `_window`) apply. The page has to link
    static/charts.css itself; the script comes with the fragment. Raises BadRequest for a filter that is none.
    """
    filters = _filters(request, run_id)
    found = await datasette.execute(database, CHOICES, {"run_id": run_id}, truncate=False)
    choices = [bounded(row) for row in found.rows]
    values = {
        kind: names_among([row["value"] for row in choices if row["kind"] == kind])[:MOST_CHOICES]
        for kind in ("split", "env")
    }
    context = {
        "filters": filters,
        "splits": values["split"],
        "envs": values["env"],
        "missing": [one for name, known in values.items() for one in not_among(datasette, request, name, known)],
        "windows": WINDOW_SIZES,
        "figures": [_figure(datasette, database, name, filters) for name in CHARTS],
        "script": static_url(datasette, "charts.js"),
    }
    return Markup(await datasette.render_template("rltracer/charts_fragment.html", context, request=request))


async def chart_page(datasette: Datasette, request: Request) -> Response:
    """Answer with one chart and nothing else, under a strict content security policy."""
    database, run = await _permitted_run(datasette, request)
    filters = _filters(request, run["id"])
    figure = _figure(datasette, database, _chart(datasette, database, request, filters), filters)
    html = f"""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(figure["title"])}: {escape(plain(run["name"]))}</title>
<link rel="stylesheet" href="{escape(static_url(datasette, "charts.css"))}">
<body class="rltracer-chart-page">
<p><a href="{escape(figure["all_url"])}">All charts of {visible(run["name"])}</a></p>
{figure["html"]}
<script type="module" src="{escape(static_url(datasette, "charts.js"))}"></script>
</body>
</html>
"""
    return Response.html(html, headers={"content-security-policy": STRICT, "x-content-type-options": "nosniff"})


async def chart_json(datasette: Datasette, request: Request) -> Response:
    """Answer with what the browser draws from: spec, rows, words, colours, and where marks and the SQL link lead."""
    try:
        database, run = await _permitted_run(datasette, request)
        filters = _filters(request, run["id"])
        chart = _chart(datasette, database, request, filters)
        query, rows = await _rows(datasette, database, chart, filters)
        figure = await _drawn(datasette, database, chart, query, rows, run["name"])
    except (BadRequest, Forbidden, NotFound) as error:
        return Response.json({"ok": False, "error": str(error)}, status=error.status)
    except QueryInterrupted:
        return Response.json({"ok": False, "error": "its query took longer than sql_time_limit_ms allows"}, status=503)
    may_query = await compat.can_execute_sql(datasette, request.actor, database)
    content = {
        **chart_content(figure),
        "ok": True,
        "window": query.window,
        "links": _links(datasette, database, chart, filters, query),
        "sql_url": sql_url(datasette, database, query) if may_query else None,
        "page_url": _chart_url(datasette, database, chart, filters),
    }
    return Response.json(content)


async def _rows(
    datasette: Datasette, database: str, chart: str, filters: Filters
) -> tuple[Query, list[dict[str, Any]]]:
    sql, parameters = span_query(filters.run_id)
    [found_span] = (await datasette.execute(database, sql, parameters)).rows
    span = Span(*found_span)
    try:
        query = plan_query(chart, filters, span)
    except ChartError as error:
        raise BadRequest(str(error)) from None
    found = await datasette.execute(database, query.sql, query.parameters, truncate=False)
    return query, [finite(bounded(row)) for row in found.rows]


async def _unread(datasette: Datasette, database: str, query: Query) -> Unread:
    row = (await datasette.execute(database, *unread_query(query))).first()
    return Unread([], "", "") if row is None else unread_of(dict(row), query)


async def _drawn(
    datasette: Datasette, database: str, chart: str, query: Query, rows: list[dict[str, Any]], run: str
) -> Figure:
    """Return a chart with its rows in words, the success rule behind it, what is unscored, and what was not read."""
    unread, scoring, rule = await _unread(datasette, database, query), scoring_query(chart, query), ""
    if rows and scoring is not None and (row := (await datasette.execute(database, *scoring)).first()) is not None:
        told = bounded(row)
        parts = await parts_of(datasette, database, int(query.parameters["run_id"]), told["path"])
        rule = scoring_words(**told, split=query.parameters["split"], parts=parts)
    return figure_of(chart, query, rows, rule, unread, run)


def _links(datasette: Datasette, database: str, chart: str, filters: Filters, query: Query) -> dict[str, Any]:
    """Return which rows a mark stands for: a table's address, fixed filters, and filters by a field of the mark."""
    about = load_spec(chart)["usermeta"]["rltracer"]
    rows = about["rows"]
    if rows["table"] == "prompt_windows" and (filters.step_gte or filters.step_lte or query.window not in WINDOW_SIZES):
        rows = about["rows_within_steps"]  # that view's windows begin at the run's first step, and have few sizes
    fixed = [("run_id", str(filters.run_id)), *rows.get("constant", {}).items()]
    if filters.env and "env" not in rows["filters"]:
        fixed.append(recorded(("env", filters.env)))
    for name, parameter in rows.get("parameters", {}).items():
        if query.parameters[parameter]:
            fixed.append(recorded((name, query.parameters[parameter])))
    return {
        "table": datasette.urls.table(database, rows["table"]),
        "fixed": fixed,
        "filters": rows["filters"],
        "choices": rows.get("choices"),
    }


def _figure(datasette: Datasette, database: str, chart: str, filters: Filters) -> dict[str, str]:
    about = load_spec(chart)["usermeta"]["rltracer"]
    url = _chart_url(datasette, database, chart, filters, ".json")
    html = Markup(
        '<figure class="rltracer-chart" data-chart="{}" data-url="{}" id="chart-{}"><h2>{}</h2><p>{}</p>'
        '<div class="drawing"><noscript><a href="{}">The numbers as JSON</a>; drawing them needs JavaScript.</noscript>'
        "</div></figure>"
    ).format(chart, url, chart, about["title"], about["about"], url)
    return {"html": html, "title": about["title"], "all_url": _charts_url(datasette, database, filters)}


def _chart_url(datasette: Datasette, database: str, chart: str, filters: Filters, ending: str = "") -> str:
    return _charts_url(datasette, database, filters, f"/{chart}{ending}")


def _charts_url(datasette: Datasette, database: str, filters: Filters, below: str = "") -> str:
    given = {
        "split": filters.split,
        "env": filters.env,
        "step__gte": filters.step_gte,
        "step__lte": filters.step_lte,
        "_window": filters.window,
    }
    return own_url(
        datasette, database, f"run/{filters.run_id}/charts{below}", [pair for pair in given.items() if pair[1]]
    )


def _filters(request: Request, run_id: int) -> Filters:
    steps = {}
    for name in ("step__gte", "step__lte"):
        steps[name] = (request.args.get(name) or request.args.get("step") or "").strip()
        if steps[name] and not re.fullmatch(r"-?[0-9]{1,15}", steps[name]):
            raise BadRequest(f"{name} is not a number.")
    window = request.args.get("_window") or ""
    if window and not re.fullmatch(r"[1-9][0-9]{0,8}", window):
        raise BadRequest("_window is not a number of steps.")
    return Filters(
        run_id,
        split=request.args.get("split") or "",
        env=request.args.get("env") or "",
        step_gte=steps["step__gte"],
        step_lte=steps["step__lte"],
        window=int(window) if window else None,
    )


def _chart(datasette: Datasette, database: str, request: Request, filters: Filters) -> str:
    chart = str(request.url_vars["chart"])
    if chart not in CHARTS:
        ways = [(f"the chart {name}", _chart_url(datasette, database, name, filters)) for name in CHARTS]
        raise NotThere(f"There is no such chart; there are {', '.join(CHARTS)}.", database, ways)
    return chart


async def _permitted_run(datasette: Datasette, request: Request) -> tuple[str, dict[str, Any]]:
    """Return the name of the index in the address and the run. Raises NotFound or Forbidden."""
    database = await permitted_index(datasette, request, *DRAWN_FROM)
    refuse_unknown_options(request, OPTIONS)
    number = integer(request.url_vars["run"])
    row = (await datasette.execute(database, "select id, name from runs where id = ?", [number])).first()
    if row is None:
        raise await no_run(datasette, database, number)
    return database, bounded(row)
