"""The charts of a run: a fragment for the run's page, a page of all of them, a page of one, and its data as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette.database import QueryInterrupted
from datasette.utils.asgi import BadRequest, Forbidden, NotFound, Request, Response
from markupsafe import Markup

from rltracer_sqlite.charts import CHARTS, Filters
from rltracer_sqlite.passrates import WINDOW_SIZES

from .access import permitted_index
from .addresses import DATABASE, integer, run_url
from .chart_data import drawn_from
from .chart_filters import OPTIONS, chart_url, charts_url, filters_of
from .chart_frames import frame_of, page_of_one, scripts
from .edge import Route
from .filter_names import refuse_unknown_options
from .filter_values import not_among
from .frame import render
from .missing import NotThere, no_run
from .queries import bounded
from .selection import names_among

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
        "trail": [(address, run["name"]), (charts_url(datasette, database, Filters(run["id"])), "charts")],
        "within": [("run_id", str(run["id"]))],
        "run": run,
        "run_url": address,
        "charts": await charts_fragment(datasette, request, database, run["id"]),
        "styles": ["charts.css"],
    }
    return await render(datasette, request, database, "charts.html", context)


async def charts_fragment(datasette: Datasette, request: Request, database: str, run_id: int) -> Markup:
    """Return the form and the figures of a run's charts, for a page that the visitor may see.

    The filters of the request (`split`, `env`, `step__gte`, `step__lte`, `_window`) apply. The page has to link
    static/charts.css itself; the scripts come with the fragment. Raises BadRequest for a filter that is none.
    """
    filters = filters_of(request, run_id)
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
        "frames": [frame_of(datasette, database, name, filters) for name in CHARTS],
        "scripts": scripts(datasette),
    }
    return Markup(await datasette.render_template("rltracer/charts_fragment.html", context, request=request))


async def chart_page(datasette: Datasette, request: Request) -> Response:
    """Answer with one chart and nothing else, under a strict content security policy."""
    database, run = await _permitted_run(datasette, request)
    filters = filters_of(request, run["id"])
    html = page_of_one(datasette, database, _chart(datasette, database, request, filters), filters, run["name"])
    return Response.html(html, headers={"content-security-policy": STRICT, "x-content-type-options": "nosniff"})


async def chart_json(datasette: Datasette, request: Request) -> Response:
    """Answer with what the browser draws from, or with why it cannot be drawn."""
    try:
        database, run = await _permitted_run(datasette, request)
        filters = filters_of(request, run["id"])
        chart = _chart(datasette, database, request, filters)
        content = await drawn_from(datasette, request.actor, database, chart, filters, run["name"])
    except (BadRequest, Forbidden, NotFound) as error:
        return Response.json({"ok": False, "error": str(error)}, status=error.status)
    except QueryInterrupted:
        return Response.json({"ok": False, "error": "its query took longer than sql_time_limit_ms allows"}, status=503)
    return Response.json({"ok": True, **content})


def _chart(datasette: Datasette, database: str, request: Request, filters: Filters) -> str:
    chart = str(request.url_vars["chart"])
    if chart not in CHARTS:
        ways = [(f"the chart {name}", chart_url(datasette, database, name, filters)) for name in CHARTS]
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
