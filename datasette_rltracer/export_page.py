"""The export page: the preferences as a form, and on request the funnel that they give, before anything is written."""

from __future__ import annotations

from typing import Any

from datasette.utils.asgi import BadRequest, NotFound, Response

from rltracer_sqlite.export import TraceDataExporter

from .access import DATABASE, permitted_index
from .addresses import static_url, table_url
from .bounds import gates
from .export import BOUNDS, MADE_OF, MODES, NUMBERS, SWITCHES, TABLES, filters, preferences, refused, run_specs
from .frame import STYLES, render
from .stream import Visitor

DEFAULTS = {"_acceptance": "correct", "_per_prompt": "2", "_order": "sample", "_seed": "17"}


def routes() -> list[tuple[str, Any]]:
    """Return the address of this page and what answers it."""
    return [(DATABASE + r"/export$", export_page)]


async def export_page(datasette: Any, request: Any) -> Response:
    """Answer with the form; `_preview` names the kind of data whose funnel is shown below it."""
    database = await permitted_index(datasette, request, *MADE_OF)
    table = request.args.get("_table") or TABLES[0]
    if table not in TABLES:
        raise NotFound("Training data is made of the tables trajectories and prompt_groups.")
    chosen, mode = filters(request), request.args.get("_preview")
    context: dict[str, Any] = {
        "title": "Export training data",
        "stylesheets": [static_url(datasette, name) for name in (*STYLES, "export.css")],
        "table": table,
        "filters": chosen,
        "table_url": table_url(datasette, database, table, chosen),
        "downloads": {name: datasette.urls.table(database, table, format=name) for name in MODES},
        "modes": MODES,
        "values": values(request),
        "fields": [*[text for text in request.args.getlist("_field") if text.strip()], ""],
        "previewed": mode if mode in MODES else None,
        "told": None,
        "problem": None,
    }
    status = 200
    if mode in MODES:
        context["told"], context["problem"], status = await _preview(datasette, request, database, table, mode)
    return await render(datasette, request, database, "export.html", context, status)


def values(request: Any) -> dict[str, str]:
    """Return what stands in the form: what was asked for, else the exporter's own defaults."""
    names = [*NUMBERS, *BOUNDS, *SWITCHES, "_split", "_no_tools"]
    asked = {name: request.args.get(name) for name in names}
    is_new = not any(value is not None for value in asked.values())
    return {name: value if value is not None else DEFAULTS.get(name, "") * is_new for name, value in asked.items()}


async def _preview(
    datasette: Any, request: Any, database: str, table: str, mode: str
) -> tuple[dict[str, Any] | None, str | None, int]:
    """Return the summary of a selection; where there is none, why, and the status that says so."""
    try:
        wanted = preferences(request, mode)
        specs = await run_specs(datasette, request, database, table)
    except BadRequest as error:
        return None, str(error), 400
    gate = gates(datasette).downloads
    await gate.enter()
    visitor = Visitor(request.receive)
    try:
        exporter = TraceDataExporter(specs, wanted, visitor.stay_or_raise)
        return await visitor.run(exporter.inspect), None, 200
    except Exception as error:
        try:
            answer = refused(error)
        except BadRequest as refusal:
            return None, str(refusal), 400
        return None, str(answer.body), int(answer.status)
    finally:
        visitor.close()
        gate.leave()
