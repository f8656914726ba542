"""Opening a step in `rltracer serve`: one that has been read leads to its page, another is read first."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

from datasette.utils import tilde_decode
from datasette.utils.asgi import NotFound, Response

from rltracer_sqlite.amounts import size
from rltracer_sqlite.browse import ALL_STEPS, needs_reading, parse_step, run_steps
from rltracer_sqlite.browse.steps import NO_STEP
from rltracer_sqlite.index.database import IndexFileError, open_index
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import SourceError

from .addresses import run_url, step_url
from .background import DONE, FAILED, Job
from .browser import Browser, permitted_browser, run_id
from .browsing import browse_url
from .frame import render
from .hosts import is_from_elsewhere


async def open_page(datasette: Any, request: Any) -> Response:
    """Lead to a step that has been read; else have it read, and answer with how far that is."""
    browser, database = await permitted_browser(datasette, request)
    path, step = (tilde_decode(request.url_vars[name]) for name in ("run", "step"))
    root = browser.folder(path)
    if step != ALL_STEPS:
        try:
            parse_step(step)
        except ValueError:
            raise NotFound("There is no such step.") from None
    job = browser.reader.job(path, step)
    if is_from_elsewhere(request) and (job is None or job.state in (DONE, FAILED)):
        # Reading is work and writes to the index, so it is for a visitor to ask for, on the page of the run's steps.
        return Response.redirect(browse_url(datasette, database, path))
    if job is not None and (job.state == DONE or request.args.get("again") == "1"):
        browser.reader.forget(path, step)
        if job.state == DONE and request.args.get("waited") == "1":
            # A file that is being written would always have something new.
            return await _to_step(datasette, database, root, path, step)
        job = browser.reader.job(path, step)
    if job is None:
        try:
            unread = await asyncio.to_thread(_is_unread, browser, root, step)
        except (SourceError, IndexFileError, OSError) as error:
            raise NotFound(str(error)) from None
        if not unread:
            return await _to_step(datasette, database, root, path, step)
        job = browser.reader.ask(root, path, step, browser.name(path))
    return await _waiting(datasette, request, database, browser, path, job)


async def _waiting(datasette: Any, request: Any, database: str, browser: Browser, path: str, job: Job) -> Response:
    ahead = sum(other.state not in (DONE, FAILED) for other in browser.reader.jobs.values()) - 1
    what = {ALL_STEPS: "all steps", NO_STEP: "the files"}.get(job.step, f"step {job.step}")
    context = {
        "title": f"reading {what}",
        "trail": [(browse_url(datasette, database), "runs"), (browse_url(datasette, database, path), path)],
        "what": what,
        "name": browser.name(path),
        "job": job,
        "ahead": max(ahead, 0),
        "failed": job.state == FAILED,
        "here": browse_url(datasette, database, path, job.step, waited=1),
        "again_url": browse_url(datasette, database, path, job.step, again=1),
        "run_url": browse_url(datasette, database, path),
        "size": size,
    }
    return await render(datasette, request, database, "browse_wait.html", context, 409 if context["failed"] else 202)


async def _to_step(datasette: Any, database: str, root: Path, path: str, step: str) -> Response:
    run = await run_id(datasette, database, root)
    if run is None:
        return Response.redirect(browse_url(datasette, database, path))
    number = None if step == ALL_STEPS else parse_step(step)
    return Response.redirect(
        run_url(datasette, database, run) if number is None else step_url(datasette, database, run, number)
    )


def _is_unread(browser: Browser, root: Path, step: str) -> bool:
    """Say whether there is anything new to read in a step. Raises NotFound where the run has no such step."""
    source = source_for(root, browser.tokenizer)
    numbers = {files.step for files in run_steps(source, root)}
    if not numbers or (step != ALL_STEPS and parse_step(step) not in numbers):
        raise NotFound("This run has no such step.")
    with closing(open_index(browser.reader.index)) as connection:
        return needs_reading(connection, source, root, step)
