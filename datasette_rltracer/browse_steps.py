"""The list of a run's steps in `rltracer serve`: which of them have been read, and which can be."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasette.utils import tilde_decode
from datasette.utils.asgi import Request, Response

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
from .frame import pager, render
from .queries import Query, answers

if TYPE_CHECKING:
    from datasette.app import Datasette

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


async def steps_page(datasette: Datasette, request: Request) -> Response:
    """Answer with the steps of a run: which of them have been read, and which can be."""
    browser, database = await permitted_browser(datasette, request)
    refuse_unknown_options(request, ("start",))
    path = tilde_decode(request.url_vars["run"])
    root, start = browser.folder(path), place(request.args.get("start")) or 0
    problem, steps = None, list[StepFiles]()
    try:
        steps = await asyncio.to_thread(_steps, root, browser.tokenizer)
    except (SourceError, OSError) as error:
        problem = str(error)
    run = await run_id(datasette, database, root)
    read = await _read_steps(datasette, request, database, run)
    context = {
        "styles": ["browse.css"],
        "title": browser.name(path),
        "trail": [(browse_url(datasette, database), "runs"), (browse_url(datasette, database, path), path)],
        "name": browser.name(path),
        "problem": problem,
        "steps": [
            {**_step(datasette, browser, path, files), **read.get(files.step, {})}
            for files in steps[start : start + STEPS_ON_A_PAGE]
        ],
        "count": len(steps),
        "read_count": sum(read.get(files.step, {}).get("row") is not None for files in steps),
        **pager(start, STEPS_ON_A_PAGE, lambda first: browse_url(datasette, database, path, start=first)),
        "all_url": browse_url(datasette, database, path, ALL_STEPS),
        "run_url": run_url(datasette, database, run) if run is not None else None,
        "size": size,
    }
    return await render(datasette, request, database, "browse_run.html", context, 200 if problem is None else 404)


def _steps(root: Path, tokenizer: str | None) -> list[StepFiles]:
    return run_steps(source_for(root, tokenizer), root)


async def _read_steps(
    datasette: Datasette, request: Request, database: str, run: int | None
) -> dict[int | None, dict[str, Any]]:
    """Return what has been read of each step: its `row` in the index, and what was amiss with its files."""
    parameters = {"run_id": run}
    read, records, troubled = await answers(
        datasette,
        request,
        database,
        Query(STEPS_READ, parameters),
        Query(RECORDS_READ, parameters),
        Query(FILES.format(of_step="1", most=1, by="step"), parameters),
    )
    found: dict[int | None, dict[str, Any]] = {None: records.first(records=0)}
    for row in read.rows:
        if row["indexed_at"] is not None:
            found.setdefault(row["step"], {})["row"] = row
    for row in troubled.rows:
        found.setdefault(row["step"], {}).update(trouble=row, trouble_words=file_trouble(row))
    return found


def _step(datasette: Datasette, browser: Browser, path: str, files: StepFiles) -> dict[str, Any]:
    """Return what the files of a step tell, and how far their reading is."""
    key = step_key(files.step)
    is_all_aside = files.aside.total() == files.files
    job = browser.reader.job(path, key) or browser.reader.job(path, ALL_STEPS)
    return {
        "step": files.step,
        "files": files.files,
        "bytes": files.bytes,
        "splits": sorted(files.splits),
        # Of a step some token shards are left aside wherever its traces are read; they are on the run's page.
        "aside": [aside_in_words(*one) for one in files.aside.items()] if is_all_aside or files.step is None else [],
        "is_all_aside": is_all_aside,
        "url": browse_url(datasette, browser.database, path, key),
        "job": job if job is not None and job.state != DONE else None,
    }
