"""The runs below a folder and their steps, each read when it is opened: the pages of `rltracer serve`.

They exist only where the plugin's configuration has `browse`, which names the folder and the database to fill. The
configuration comes from whoever starts the server, and no address can lead out of the folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from datasette.utils import tilde_decode
from datasette.utils.asgi import NotFound, Response

from rltracer_sqlite.browse import ALL_STEPS, Found, find_runs, needs_reading, parse_step, run_folder_path, run_steps
from rltracer_sqlite.browse.steps import NO_STEP, StepFiles, step_key
from rltracer_sqlite.index.database import IndexFileError, open_index
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import SourceError

from .access import permitted_index, place
from .addresses import run_url, step_url
from .background import DONE, FAILED, Job, Reader
from .browsing import browse_config, browse_url
from .frame import render
from .lists import Query, answers

RUNS_ON_A_PAGE = 200
STEPS_ON_A_PAGE = 500
BROWSE = r"^/-/rltracer/(?P<database>[^/]+)/browse"

STEPS_READ = """
select
    step, max(indexed_at) as indexed_at, sum(trajectories) as trajectories, sum(scored) as scored,
    sum(successes) as successes
from steps where run_id = (select id from runs where root = :root) group by step
"""
RUNS_READ = """
select
    r.id, r.root, count(distinct case when s.indexed_at is not null then ifnull(s.step, -1) end) as steps,
    sum(s.trajectories) as trajectories
from runs r left join steps s on s.run_id = r.id group by r.id
"""


class Browser:
    """The folder that is looked through, what was found in it, and what reads its steps."""

    def __init__(self, datasette: Any, config: Mapping[str, Any]) -> None:
        self.root, self.database = Path(config["root"]).resolve(), str(config["database"])
        self.tokenizer = config.get("tokenizer")
        index = Path(datasette.databases[self.database].path)
        self.reader = Reader(index, self.root, self.tokenizer, bool(config.get("fts")))
        self._found: Found | None = None
        self._finding = asyncio.Lock()

    async def runs(self, again: bool = False) -> Found:
        """Return the runs below the folder as they were when somebody last looked; `again`: look now."""
        async with self._finding:
            if self._found is None or again:
                self._found = await asyncio.to_thread(find_runs, self.root)
            return self._found

    def folder(self, path: str) -> Path:
        """Return the folder, or the file, of a run. Raises NotFound for what is no run below the folder."""
        try:
            folder = self.root if self.root.is_file() else run_folder_path(self.root, path)
        except SourceError as error:
            raise NotFound(str(error)) from None
        return folder


_browsers: WeakKeyDictionary[Any, Browser] = WeakKeyDictionary()


def routes(datasette: Any) -> list[tuple[str, Any]]:
    """Return the addresses of these pages and what answers them; none where they are not configured."""
    if browse_config(datasette) is None:
        return []
    return [
        (r"^/-/rltracer/?$", first_page),
        (BROWSE + r"$", runs_page),
        (BROWSE + r"/(?P<run>[^/]+)$", steps_page),
        (BROWSE + r"/(?P<run>[^/]+)/(?P<step>[^/]+)$", open_page),
    ]


async def first_page(datasette: Any, request: Any) -> Response:
    """Lead to the list of runs."""
    return Response.redirect(browse_url(datasette, _browser(datasette).database))


async def runs_page(datasette: Any, request: Any) -> Response:
    """Answer with the runs below the folder."""
    browser, database = await _permitted(datasette, request)
    try:
        found = await browser.runs(again=request.args.get("again") == "1")
    except SourceError as error:
        raise NotFound(str(error)) from None
    [read] = await answers(datasette, request, database, Query(RUNS_READ))
    known = {row["root"]: row for row in read.rows}
    wanted, start = (request.args.get("q") or "").strip(), place(request.args.get("start")) or 0
    runs = [run for run in found.runs if wanted.lower() in run.path.lower()]

    def here(**query: Any) -> str:
        return browse_url(datasette, database, q=wanted or None, **query)

    context = {
        "title": "runs",
        "trail": [(browse_url(datasette, database), "runs")],
        "folder": str(browser.root),
        "runs": [
            {
                "path": run.path,
                "name": _name(browser, run.path),
                "url": browse_url(datasette, database, run.path),
                "files": run.files,
                "bytes": run.bytes,
                "steps": _span(run.steps),
                "step_count": len(run.steps),
                "changed": _moment(run.modified),
                "is_known": run.is_known,
                "read": known.get(str(_root_of(browser, run.path))),
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


async def steps_page(datasette: Any, request: Any) -> Response:
    """Answer with the steps of a run: which of them have been read, and which can be."""
    browser, database = await _permitted(datasette, request)
    path = tilde_decode(request.url_vars["run"])
    root = browser.folder(path)
    problem, steps = None, list[StepFiles]()
    try:
        steps = await asyncio.to_thread(_steps, root, browser.tokenizer)
    except (SourceError, OSError) as error:
        problem = str(error)
    [read] = await answers(datasette, request, database, Query(STEPS_READ, {"root": str(root)}))
    known = {row["step"]: row for row in read.rows}
    start = place(request.args.get("start")) or 0
    run = await _run_id(datasette, database, root)
    context = {
        "title": _name(browser, path),
        "trail": [(browse_url(datasette, database), "runs"), (browse_url(datasette, database, path), path)],
        "name": _name(browser, path),
        "problem": problem,
        "steps": [
            _step(datasette, database, browser, path, files, known.get(files.step))
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


async def open_page(datasette: Any, request: Any) -> Response:
    """Lead to a step that has been read; else have it read, and answer with how far that is."""
    browser, database = await _permitted(datasette, request)
    path, step = (tilde_decode(request.url_vars[name]) for name in ("run", "step"))
    root = browser.folder(path)
    if step != ALL_STEPS:
        try:
            parse_step(step)
        except ValueError:
            raise NotFound("There is no such step.") from None
    job = browser.reader.job(path, step)
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
        job = browser.reader.ask(root, path, step, _name(browser, path))
    return await _waiting(datasette, request, database, browser, path, job)


async def _waiting(datasette: Any, request: Any, database: str, browser: Browser, path: str, job: Job) -> Response:
    ahead = sum(other.state not in (DONE, FAILED) for other in browser.reader.jobs.values()) - 1
    what = {ALL_STEPS: "all steps", NO_STEP: "the files"}.get(job.step, f"step {job.step}")
    context = {
        "title": f"reading {what}",
        "trail": [(browse_url(datasette, database), "runs"), (browse_url(datasette, database, path), path)],
        "what": what,
        "name": _name(browser, path),
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
    run = await _run_id(datasette, database, root)
    if run is None:
        return Response.redirect(browse_url(datasette, database, path))
    number = None if step == ALL_STEPS else parse_step(step)
    return Response.redirect(
        run_url(datasette, database, run) if number is None else step_url(datasette, database, run, number)
    )


async def _permitted(datasette: Any, request: Any) -> tuple[Browser, str]:
    database = await permitted_index(datasette, request, "runs", "steps", "shards")
    browser = _browser(datasette)
    if database != browser.database:
        raise NotFound("No runs are offered for this database.")
    return browser, database


def _browser(datasette: Any) -> Browser:
    if datasette not in _browsers:
        config = browse_config(datasette)
        if config is None or config["database"] not in datasette.databases:
            raise NotFound("No runs are offered here.")
        _browsers[datasette] = Browser(datasette, config)
    return _browsers[datasette]


async def _run_id(datasette: Any, database: str, root: Path) -> int | None:
    found = await datasette.databases[database].execute("select id from runs where root = :root", {"root": str(root)})
    return found.rows[0]["id"] if found.rows else None


def _steps(root: Path, tokenizer: str | None) -> list[StepFiles]:
    return run_steps(source_for(root, tokenizer), root)


def _is_unread(browser: Browser, root: Path, step: str) -> bool:
    """Say whether there is anything new to read in a step. Raises NotFound where the run has no such step."""
    source = source_for(root, browser.tokenizer)
    numbers = {files.step for files in run_steps(source, root)}
    if not numbers or (step != ALL_STEPS and parse_step(step) not in numbers):
        raise NotFound("This run has no such step.")
    with closing(open_index(browser.reader.index)) as connection:
        return needs_reading(connection, source, root, step)


def _root_of(browser: Browser, path: str) -> Path:
    return browser.root if browser.root.is_file() else (browser.root / path)


def _name(browser: Browser, path: str) -> str:
    return browser.root.name or str(browser.root) if path == "." else path


def _step(
    datasette: Any, database: str, browser: Browser, path: str, files: StepFiles, row: Mapping[str, Any] | None
) -> dict[str, Any]:
    key = step_key(files.step)
    job = browser.reader.job(path, key) or browser.reader.job(path, ALL_STEPS)
    return {
        "step": files.step,
        "files": files.files,
        "bytes": files.bytes,
        "splits": sorted(files.splits),
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


def size(number: float) -> str:
    """Return a number of bytes for people, in powers of 1000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
