"""Opening a step in `rltracer serve`: one that has been read leads to its page, another is read first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from datasette.utils import tilde_decode
from datasette.utils.asgi import NotFound, Request, Response

from rltracer_sqlite.amounts import size
from rltracer_sqlite.browse import ALL_STEPS, needs_reading, parse_step, run_steps, why_nothing_is_read
from rltracer_sqlite.browse.steps import NO_STEP, set_aside, step_key
from rltracer_sqlite.index.database import IndexFileError, open_index
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import SourceError

from .addresses import run_url, step_url
from .browse_config import browse_url
from .browse_folder import Browser, permitted_browser, run_id
from .browse_reader import DONE, FAILED, Job
from .filter_names import refuse_unknown_options
from .frame import render, step_words
from .hosts import is_from_elsewhere
from .missing import NotThere, nearest
from .text import plain

if TYPE_CHECKING:
    from datasette.app import Datasette


class NoSuchStep(Exception):
    """A run has no step of a number; it has these."""

    def __init__(self, steps: Iterable[int]) -> None:
        super().__init__("This run has no such step.")
        self.steps = sorted(steps)


async def open_page(datasette: Datasette, request: Request) -> Response:
    """Lead to a step that has been read; else have it read, and answer with how far that is."""
    browser, database = await permitted_browser(datasette, request)
    refuse_unknown_options(request, ("again", "waited"))
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
            # What could not be read is tried again when it is opened first, and then only when that is asked for.
            again = request.args.get("again") == "1" or not browser.reader.was_asked(path, step)
            unread, nothing = await asyncio.to_thread(_look, browser, root, step, again)
        except NoSuchStep as error:
            raise _no_step(datasette, database, path, parse_step(step), error.steps) from None
        except (SourceError, IndexFileError, OSError) as error:
            raise NotFound(str(error)) from None
        if unread:
            job = browser.reader.ask(root, path, step, browser.name(path))
        elif nothing is None:
            return await _to_step(datasette, database, root, path, step)
        else:
            job = Job(root, path, step, browser.name(path), FAILED, error=nothing)
    return await _waiting(datasette, request, database, browser, path, job)


def _no_step(datasette: Datasette, database: str, path: str, step: int | None, steps: Sequence[int]) -> NotThere:
    """Return what to raise for a step that a run below the folder has not; the nearest ones are named."""
    before = [number for number in steps if step is not None and number < step]
    after = [number for number in steps if step is not None and number > step]
    found = [min(steps, default=None), max(steps, default=None), max(before, default=None), min(after, default=None)]
    ways = nearest(found, lambda one: (step_words(one), browse_url(datasette, database, path, step_key(one))))
    ways.append((f"all steps of {plain(path)}", browse_url(datasette, database, path)))
    return NotThere("This run has no such step.", database, ways)


async def _waiting(
    datasette: Datasette, request: Request, database: str, browser: Browser, path: str, job: Job
) -> Response:
    ahead = sum(other.state not in (DONE, FAILED) for other in browser.reader.jobs.values()) - 1
    what = {ALL_STEPS: "all steps", NO_STEP: "the files"}.get(job.step, f"step {job.step}")
    context = {
        "styles": ["browse.css"],
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


async def _to_step(datasette: Datasette, database: str, root: Path, path: str, step: str) -> Response:
    run = await run_id(datasette, database, root)
    if run is None:
        return Response.redirect(browse_url(datasette, database, path))
    number = None if step == ALL_STEPS else parse_step(step)
    return Response.redirect(
        run_url(datasette, database, run) if number is None else step_url(datasette, database, run, number)
    )


def _look(browser: Browser, root: Path, step: str, again: bool) -> tuple[bool, str | None]:
    """Return whether there is anything to read in a step, and if not why none of it was found when it was read.

    Raises NoSuchStep where the run has none of this number.
    """
    source = source_for(root, browser.tokenizer)
    steps = run_steps(source, root)
    numbers = {files.step for files in steps}
    if not numbers or (step != ALL_STEPS and parse_step(step) not in numbers):
        raise NoSuchStep(number for number in numbers if number is not None)
    with closing(open_index(browser.reader.index)) as connection:
        if needs_reading(connection, source, root, step, again):
            return True, None
        [run] = connection.execute("select id from runs where root = ?", (str(root),)).fetchone()
        return False, why_nothing_is_read(connection, run, step, set_aside(steps, step))
