"""What could not be read of a run, or of every run of an index, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..amounts import plural
from .columns import screen_width, wrapped
from .visible import in_line, json_line, printable

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..roots import Roots
    from ..sources.places import Root


def problem_lines(adapter: IndexedAdapter, as_json: bool) -> Iterator[str]:
    """Yield the problems of a run, and how many there are; of a run's folder every step is read first."""
    from ..index.queries import problems
    from ..roots import Roots

    for step in adapter.list_steps():
        adapter.ensure_step_indexed(step)
    roots = Roots.for_database(adapter.index) if not adapter.refreshes else Roots([adapter.rollout_dir])
    found = problems(adapter.connection, adapter.run_id)
    yield from _lines(_by_names_of_now(found, adapter.rollout_dir, roots), as_json)


def problems_of_all(place: Root, as_json: bool) -> Iterator[str] | None:
    """Return the problems of every run of an index, or None for an index of one run or for a run."""
    from ..index.database import open_index
    from ..index.queries import problems, runs
    from ..roots import Roots
    from ..sources.places import is_database

    if not isinstance(place, Path) or not is_database(place):
        return None
    with closing(open_index(place)) as connection:
        known, roots = runs(connection), Roots.for_database(place)
        found = [
            {"run": run.name, **problem}
            for run in known
            for problem in _by_names_of_now(problems(connection, run.id), run.root, roots)
        ]
    return _lines(iter(found), as_json) if len(known) > 1 else None


def _by_names_of_now(problems: Iterator[dict[str, Any]], root: str | Root, roots: Roots) -> Iterator[dict[str, Any]]:
    """Yield problems with the names that their files have now: one may have been sealed since it was indexed.

    Where the run's folder may not be read, they are the names that the index knows.
    """
    from ..roots import RootNotAllowed
    from ..sources.base import Locator
    from ..sources.files import file_there

    try:
        folder = roots.check(root)
    except RootNotAllowed:
        yield from problems
        return
    names: dict[str, str] = {}
    for problem in problems:
        path = problem["path"]
        if path not in names:
            names[path] = file_there(folder, Locator("", path, "", 0, 0))
        yield {**problem, "path": names[path]}


def _lines(problems: Iterator[dict[str, Any]], as_json: bool) -> Iterator[str]:
    count = 0
    for problem in problems:
        count += 1
        if as_json:
            yield json_line(problem)
            continue
        run = f"{in_line(problem['run'])}: " if "run" in problem else ""
        line = f" line {problem['line']:,}" if problem["line"] else ""
        yield from wrapped(printable(f"{run}{in_line(problem['path'])}{line}: {problem['reason']}"), screen_width())
    if not as_json:
        yield plural(count, "problem")
