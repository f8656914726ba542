"""What the charts of a page are drawn of: read from its address, and written into those of the charts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from datasette.utils.asgi import BadRequest, Request

from rltracer_sqlite.charts import Filters

from .addresses import own_url

if TYPE_CHECKING:
    from datasette.app import Datasette

OPTIONS = ("split", "env", "step", "step__gte", "step__lte", "_window")


def filters_of(request: Request, run_id: int) -> Filters:
    """Return the filters in an address of a run. Raises BadRequest for one that is none."""
    return Filters(
        run_id,
        split=request.args.get("split") or "",
        env=request.args.get("env") or "",
        step_gte=_step(request, "step__gte"),
        step_lte=_step(request, "step__lte"),
        window=_window(request),
    )


def _step(request: Request, name: str) -> str:
    step = (request.args.get(name) or request.args.get("step") or "").strip()
    if step and not re.fullmatch(r"-?[0-9]{1,15}", step):
        raise BadRequest(f"{name} is not a number.")
    return step


def _window(request: Request) -> int | None:
    window = request.args.get("_window") or ""
    if window and not re.fullmatch(r"[1-9][0-9]{0,8}", window):
        raise BadRequest("_window is not a number of steps.")
    return int(window) if window else None


def charts_url(datasette: Datasette, database: str, filters: Filters, below: str = "") -> str:
    """Return the address of the page of all charts with these filters, or of what lies below it."""
    given = {
        "split": filters.split,
        "env": filters.env,
        "step__gte": filters.step_gte,
        "step__lte": filters.step_lte,
        "_window": filters.window,
    }
    pairs = [pair for pair in given.items() if pair[1]]
    return own_url(datasette, database, f"run/{filters.run_id}/charts{below}", pairs)


def chart_url(datasette: Datasette, database: str, chart: str, filters: Filters, ending: str = "") -> str:
    """Return the address of the page of one chart, or with the ending .json of what it draws from."""
    return charts_url(datasette, database, filters, f"/{chart}{ending}")
