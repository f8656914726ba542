"""What could not be read of a run, or of every run of an index, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..amounts import plural
from .columns import screen_width, wrapped
from .visible import json_line, printable

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..sources.places import Root


def problem_lines(adapter: IndexedAdapter, as_json: bool) -> Iterator[str]:
    """Yield the problems of a run, and how many there are; of a run's folder every step is read first."""
    from ..index.queries import problems

    for step in adapter.list_steps():
        adapter.ensure_step_indexed(step)
    yield from _lines(problems(adapter.connection, adapter.run_id), as_json)


def problems_of_all(place: Root, as_json: bool) -> Iterator[str] | None:
    """Return the problems of every run of an index, or None for an index of one run or for a run."""
    from ..index.database import open_index
    from ..index.queries import problems, runs
    from ..sources.places import is_database

    if not isinstance(place, Path) or not is_database(place):
        return None
    with closing(open_index(place)) as connection:
        known = runs(connection)
        found = [{"run": run.name, **problem} for run in known for problem in problems(connection, run.id)]
    return _lines(iter(found), as_json) if len(known) > 1 else None


def _lines(problems: Iterator[dict[str, Any]], as_json: bool) -> Iterator[str]:
    count = 0
    for problem in problems:
        count += 1
        if as_json:
            yield json_line(problem)
            continue
        run = f"{problem['run']}: " if "run" in problem else ""
        line = f" line {problem['line']:,}" if problem["line"] else ""
        yield from wrapped(printable(f"{run}{problem['path']}{line}: {problem['reason']}"), screen_width())
    if not as_json:
        yield plural(count, "problem")
