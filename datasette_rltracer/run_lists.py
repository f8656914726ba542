"""The lists of `rltracer serve`: the runs below a folder, and the steps of one of them with what has been read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasette.utils import tilde_decode
from datasette.utils.asgi import NotFound, Request, Response

from rltracer_sqlite.amounts import size
from rltracer_sqlite.browse import ALL_STEPS, run_steps
from rltracer_sqlite.browse.outcome import FILES, aside_in_words, file_trouble
from rltracer_sqlite.browse.steps import StepFiles, step_key
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import SourceError

from .addresses import place, run_url
from .browse_config import browse_url
from .browse_folder import Browser, permitted_browser, run_id
from .browse_reader import DONE
from .filter_names import refuse_unknown_options
from .frame import render
from .hosts import is_from_elsewhere
from .queries import Query, answers

if TYPE_CHECKING:
    from datasette.app import Datasette

RUNS_ON_A_PAGE = 200
STEPS_ON_A_PAGE = 500

# A pass rate is of one split: train, where the step has any of it.
STEPS_READ = """
with placed as (
    select *, row_number() over (
        partition by step order by trajectories = 0, split is not 'train', split
    ) as place
    from steps where run_id = :run_id
)
select
    step, max(indexed_at) as indexed_at, sum(trajectories) as trajectories,
    max(iif(place = 1, split, null)) as split, sum(iif(place = 1, trajectories, 0)) as of_split,
    sum(iif(place = 1, scored, 0)) as scored, sum(iif(place = 1, successes, 0)) as successes
from placed group by step
"""
# Records of files whose places tell no step; the steps that they are of stand in the records.
RECORDS_READ = """
select ifnull(sum(records), 0) as records from shards where run_id = :run_id and step is null and state <> 'gone'
"""
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
    try:
        found = await browser.runs(again=request.args.get("again") == "1" and not is_from_elsewhere(request))
    except SourceError as error:
        raise NotFound(str(error)) from None
    [read] = await answers(datasette, request, database, Query(RUNS_READ))
    known = {row["root"]: row for row in read.rows}
    wanted, start = (request.args.get("q") or "").strip(), place(request.args.get("start")) or 0
    runs = [run for run in found.runs if wanted.lower() in run.path.lower()]

    def here(**query: Any) -> str:
        return browse_url(datasette, database, q=wanted or None, **query)

    context = {
        "styles": ["browse.css"],
        "title": "runs",
        "trail": [(browse_url(datasette, database), "runs")],
        "folder": str(browser.root),
        "runs": [
            {
                "path": run.path,
                "name": browser.name(run.path),
                "url": browse_url(datasette, database, run.path),
                "files": run.files,
                "bytes": run.bytes,
                "steps": _span(run.steps),
                "step_count": len(run.steps),
                "changed": _moment(run.modified),
                "is_known": run.is_known,
                "unread": run.unread,
                "read": known.get(str(browser.place(run.path))),
            }
            for run in runs[start : start + RUNS_ON_A_PAGE]
        ],
        "count": len(runs),
        "all": len(found.runs),
        "found": found,
        "wanted": wanted,
        "start": start,
        "following": here(start=start + RUNS_ON_A_PAGE),
        "preceding": here(start=max(start - RUNS_ON_A_PAGE, 0) or None),
        "again_url": browse_url(datasette, database, again=1),
        "form_url": browse_url(datasette, database),
        "size": size,
    }
    return await render(datasette, request, database, "browse.html", context)


async def steps_page(datasette: Datasette, request: Request) -> Response:
    """Answer with the steps of a run: which of them have been read, and which can be."""
    browser, database = await permitted_browser(datasette, request)
    refuse_unknown_options(request, ("start",))
    path = tilde_decode(request.url_vars["run"])
    root = browser.folder(path)
    problem, steps = None, list[StepFiles]()
    try:
        steps = await asyncio.to_thread(_steps, root, browser.tokenizer)
    except (SourceError, OSError) as error:
        problem = str(error)
    run = await run_id(datasette, database, root)
    read, records, troubled = await answers(
        datasette,
        request,
        database,
        Query(STEPS_READ, {"run_id": run}),
        Query(RECORDS_READ, {"run_id": run}),
        Query(FILES.format(of_step="1", most=1), {"run_id": run}),
    )
    known = {row["step"]: row for row in read.rows}
    troubles = {row["step"]: row for row in troubled.rows}
    start = place(request.args.get("start")) or 0
    context = {
        "styles": ["browse.css"],
        "title": browser.name(path),
        "trail": [(browse_url(datasette, database), "runs"), (browse_url(datasette, database, path), path)],
        "name": browser.name(path),
        "problem": problem,
        "steps": [
            {
                **_step(datasette, database, browser, path, files, known.get(files.step)),
                "trouble": troubles.get(files.step),
                "trouble_words": file_trouble(troubles[files.step]) if files.step in troubles else None,
                "records": records.first(records=0)["records"] if files.step is None else 0,
            }
            for files in steps[start : start + STEPS_ON_A_PAGE]
        ],
        "count": len(steps),
        "read_count": sum(files.step in known and known[files.step]["indexed_at"] is not None for files in steps),
        "start": start,
        "following": browse_url(datasette, database, path, start=start + STEPS_ON_A_PAGE),
        "preceding": browse_url(datasette, database, path, start=max(start - STEPS_ON_A_PAGE, 0) or None),
        "all_url": browse_url(datasette, database, path, ALL_STEPS),
        "run_url": run_url(datasette, database, run) if run is not None else None,
        "size": size,
    }
    return await render(datasette, request, database, "browse_run.html", context, 200 if problem is None else 404)


def _steps(root: Path, tokenizer: str | None) -> list[StepFiles]:
    return run_steps(source_for(root, tokenizer), root)


def _step(
    datasette: Datasette, database: str, browser: Browser, path: str, files: StepFiles, row: Mapping[str, Any] | None
) -> dict[str, Any]:
    key = step_key(files.step)
    job = browser.reader.job(path, key) or browser.reader.job(path, ALL_STEPS)
    return {
        "step": files.step,
        "files": files.files,
        "bytes": files.bytes,
        "splits": sorted(files.splits),
        "aside": [aside_in_words(*one) for one in files.aside.items()] if files.aside.total() == files.files else [],
        "url": browse_url(datasette, database, path, key),
        "row": row if row is not None and row["indexed_at"] is not None else None,
        "job": job if job is not None and job.state not in (DONE,) else None,
    }


def _span(steps: set[int]) -> str | None:
    if not steps:
        return None
    return str(min(steps)) if len(steps) == 1 else f"{min(steps)} – {max(steps)}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
