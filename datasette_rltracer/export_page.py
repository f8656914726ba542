"""The export page: the preferences as a form, and on request the funnel that they give, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasette.utils.asgi import BadRequest, NotFound, Response

from rltracer_sqlite.export import ExportPreferences, TraceDataExporter, TraceRunSpec

from .access import DATABASE, permitted_index
from .addresses import static_url, table_url
from .bounds import gates
from .export import (
    BOUNDS,
    MADE_OF,
    MODES,
    NUMBERS,
    SWITCHES,
    TABLES,
    filters,
    preferences,
    refuse_unknown,
    refused,
    run_specs,
)
from .frame import STYLES, render
from .stream import Visitor

# What a download without these preferences takes, where an empty choice would look like another one.
DOWNLOADED = {"_acceptance": "any", "_order": "sample"}
# A filter on one of these says itself which split is meant.
NAMES_SPLIT = {"split", "prompt_group_id", "id", "uid"}


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
    if mode is not None and mode not in MODES:
        raise BadRequest(f"_preview={mode!r} is one of {', '.join(MODES)}.")
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
    try:
        await refuse_unknown(datasette, request, database, table)
    except BadRequest as error:
        context["problem"], status, mode = str(error), 400, None
    if mode in MODES:
        context["told"], context["problem"], status = await _preview(datasette, request, database, table, mode)
    return await render(datasette, request, database, "export.html", context, status)


def values(request: Any) -> dict[str, str]:
    """Return what stands in the form: what was asked for, else what `rltracer export` does when it is told nothing."""
    asked = {name: request.args.get(name) for name in [*NUMBERS, *BOUNDS, *SWITCHES, "_split", "_no_tools", "_preview"]}
    if any(value is not None for value in asked.values()):
        return {name: value or DOWNLOADED.get(name, "") for name, value in asked.items()}
    return dict.fromkeys(asked, "") | _defaults() | {"_split": _split(filters(request))}


def _defaults() -> dict[str, str]:
    usual = ExportPreferences().as_json()
    named = {key: name for key, (name, _) in NUMBERS.items()} | SWITCHES
    return {key: "" if usual[name] in (None, False) else str(usual[name]) for key, name in named.items()}


def _split(chosen: Sequence[tuple[str, str]]) -> str:
    """Return the split that a new form asks for: the usual one, unless the table's filters choose it themselves."""
    columns = {name.partition("__")[0] for name, _ in chosen}
    is_chosen = bool(columns & NAMES_SPLIT) or any(name == "_where" and "split" in value for name, value in chosen)
    return "" if is_chosen else TraceRunSpec.split or ""


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
