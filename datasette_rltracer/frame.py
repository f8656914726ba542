"""What every page of ours has around its content: the way down from the home page, the stylesheet and the keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Request, Response

from .addresses import export_url, group_url, overview_url, run_url, search_url, step_url
from .browse_config import browse_url, browsed_database
from .drawings import advantage_cell, cell, mean_cell, rate_cell, reward_cell
from .figures import brief, counted, moment, number
from .kept import static_url
from .selection import Pair
from .text import first_words

if TYPE_CHECKING:
    from datasette.app import Datasette

STYLES = ("rltracer.css", "lists.css", "forms.css")
# Of each outcome: the class that colours it, its sign and its word.
OUTCOMES = {1: ("pass", "✓", "passed"), 0: ("fail", "✗", "failed"), None: ("none", "–", "unscored")}


async def render(
    datasette: Datasette,
    request: Request,
    database: str | None,
    template: str,
    context: dict[str, Any],
    status: int = 200,
) -> Response:
    """Answer with a template in its frame. `context["trail"]` are (address, words) below the overview.

    `context["styles"]` are the names of stylesheets of a page's own. `context["within"]` are the filters of
    trajectories by which search and export stay in the run, or the step, that a page is of; `context["rows_url"]` is
    the export of what it lists.

    Without a database the frame leads to none.
    """
    framed = {
        "database": database,
        "stylesheets": [static_url(datasette, name) for name in (*STYLES, *context.get("styles", ()))],
        "print_stylesheet": static_url(datasette, "print.css"),
        "script": static_url(datasette, "reading.js"),
        "live": None,
        "live_script": static_url(datasette, "live.js"),
        **(
            {}
            if database is None
            else urls_beside(datasette, database, context.get("within", ()), context.get("rows_url"))
        ),
        "trail": [],
        "number": number,
        "counted": counted,
        "first_words": first_words,
        "brief": brief,
        "moment": moment,
        "cell": cell,
        "mean_cell": mean_cell,
        "advantage_cell": advantage_cell,
        "rate_cell": rate_cell,
        "reward_cell": reward_cell,
        "outcomes": OUTCOMES,
        **context,
    }
    html = await datasette.render_template(f"rltracer/{template}", framed, request=request, view_name="rltracer")
    return Response.html(html, status=status)


def urls_beside(
    datasette: Datasette, database: str, within: Sequence[Pair], rows_url: str | None = None
) -> dict[str, str | None]:
    """Return the addresses that stand above every page of an index, as `render` has them of its context."""
    exported = export_url(datasette, database, "trajectories" if within else None, within)
    return {
        "overview_url": overview_url(datasette, database),
        "search_url": search_url(datasette, database, None, within),
        "export_url": rows_url or exported,
        "browse_url": browse_url(datasette, database) if browsed_database(datasette) == database else None,
    }


def trail(
    datasette: Datasette,
    database: str,
    run: tuple[int, str] | None = None,
    step: tuple[int | None] | None = None,
    group: int | None = None,
    prompt: int | None = None,
) -> list[tuple[str, str]]:
    """Return the way down to a page, as far as it is given: run (id and name), step, prompt group and its prompt."""
    steps = []
    if run is not None:
        steps.append((run_url(datasette, database, run[0]), f"run: {run[1]}"))
    if run is not None and step is not None:
        steps.append((step_url(datasette, database, run[0], step[0]), step_words(step[0])))
    if group is not None:
        of_prompt = "" if prompt is None else f" of prompt {prompt}"
        steps.append((group_url(datasette, database, group), f"prompt group {group}{of_prompt}"))
    return steps


def pager(start: int, size: int, here: Callable[[int | None], str]) -> dict[str, Any]:
    """Return what leads through a list: where this page of it starts, and the addresses of those beside it.

    `here` gives the address of the page that starts at a place; at None it is the first.
    """
    return {"start": start, "following": here(start + size), "preceding": here(max(start - size, 0) or None)}


def step_words(step: int | None) -> str:
    """Return what a step is called."""
    return "no step" if step is None else f"step {number(step)}"
