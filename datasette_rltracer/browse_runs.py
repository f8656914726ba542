"""The list of the runs below the folder of `rltracer serve`, as their files tell it, with what has been read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import NotFound, Request, Response

from rltracer_sqlite.amounts import size
from rltracer_sqlite.browse import Found, RunFolder
from rltracer_sqlite.sources.base import SourceError

from .addresses import place
from .browse_config import browse_url
from .browse_folder import Browser, permitted_browser
from .filter_names import refuse_unknown_options
from .frame import pager, render
from .hosts import is_from_elsewhere
from .queries import Query, answers

if TYPE_CHECKING:
    from datasette.app import Datasette

RUNS_ON_A_PAGE = 200

RUNS_READ = """
select
    r.id, r.root, count(distinct case when s.indexed_at is not null then ifnull(s.step, -1) end) as steps,
    sum(s.trajectories) as trajectories
from runs r left join steps s on s.run_id = r.id group by r.id
"""


async def runs_page(datasette: Datasette, request: Request) -> Response:
    """Answer with the runs below the folder."""
    browser, database = await permitted_browser(datasette, request)
    refuse_unknown_options(request, ("q", "start", "again"))
    found = await _found(browser, request)
    [read] = await answers(datasette, request, database, Query(RUNS_READ))
    wanted, start = (request.args.get("q") or "").strip(), place(request.args.get("start")) or 0
    runs = [run for run in found.runs if wanted.lower() in run.path.lower()]
    context = {
        "styles": ["browse.css"],
        "title": "runs",
        "trail": [(browse_url(datasette, database), "runs")],
        "folder": str(browser.root),
        "runs": _runs(
            datasette, browser, runs[start : start + RUNS_ON_A_PAGE], {row["root"]: row for row in read.rows}
        ),
        "count": len(runs),
        "all": len(found.runs),
        "found": found,
        "wanted": wanted,
        **pager(start, RUNS_ON_A_PAGE, lambda first: browse_url(datasette, database, q=wanted or None, start=first)),
        "again_url": browse_url(datasette, database, again=1),
        "form_url": browse_url(datasette, database),
        "size": size,
    }
    return await render(datasette, request, database, "browse.html", context)


async def _found(browser: Browser, request: Request) -> Found:
    """Return the runs below the folder, looked for anew where the visitor asks for that."""
    try:
        return await browser.runs(again=request.args.get("again") == "1" and not is_from_elsewhere(request))
    except SourceError as error:
        raise NotFound(str(error)) from None


def _runs(
    datasette: Datasette, browser: Browser, runs: Sequence[RunFolder], read: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows of the list; `read` is what the index has of runs, by where they are."""
    return [
        {
            "name": browser.name(run.path),
            "url": browse_url(datasette, browser.database, run.path) if _is_utf8(run.path) else None,
            "files": run.files,
            "bytes": run.bytes,
            "steps": _span(run.steps),
            "step_count": len(run.steps),
            "changed": _moment(run.modified),
            "is_known": run.is_known,
            "unread": run.unread,
            "system": run.system,
            "read": read.get(str(browser.place(run.path))),
        }
        for run in runs
    ]


def _is_utf8(path: str) -> bool:
    """Say whether an address can have a path in it; the name of a folder may be any bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _span(steps: set[int]) -> str | None:
    if not steps:
        return None
    return str(min(steps)) if len(steps) == 1 else f"{min(steps)} – {max(steps)}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
