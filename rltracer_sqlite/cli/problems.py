"""What of a run, or of every run of an index, was not read, in the terminal: its problems and its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from ..amounts import plural
from .columns import screen_width, wrapped
from .visible import in_line, json_line, printable

if TYPE_CHECKING:
    import sqlite3

    from ..adapter import IndexedAdapter
    from ..index.queries import Run
    from ..roots import Roots
    from ..sources.places import Root

    Row = dict[str, Any]

MOST_OF_A_FILE = 20  # kinds of problems
MOST_FILES = 20  # in one state
LONGEST = 2_000  # characters of one problem; an index of ours has some hundred
UNFINISHED = "unfinished, and read when it is complete"  # a line
CALLED = {  # one and several files in a state, as the last line counts them
    "waiting": ("file has an unfinished last line", "files have an unfinished last line"),
    "gone": ("file is gone", "files are gone"),
    "reading": ("file is not read to its end", "files are not read to their ends"),
    "unread": ("file could not be read", "files could not be read"),
    "empty": ("file is empty", "files are empty"),
    "aside": ("file is left aside", "files are left aside"),
}


def problem_lines(adapter: IndexedAdapter, as_json: bool) -> Iterator[str]:
    """Yield what of a run was not read, and how much that is; of a run's folder every step is read first."""
    from ..index.queries import runs
    from ..roots import Roots

    for step in adapter.list_steps():
        adapter.ensure_step_indexed(step)
    roots = Roots.for_database(adapter.index) if not adapter.refreshes else Roots([adapter.rollout_dir])
    known = runs(adapter.connection)
    chosen = [run for run in known if run.id == adapter.run_id]
    of_run = f" where shard_id in (select id from shards where run_id = {adapter.run_id})" if len(known) > 1 else ""
    yield from _told(adapter.connection, chosen, roots, as_json, _how_to_list_all(adapter.index, of_run))


def problems_of_all(place: Root, as_json: bool) -> Iterator[str] | None:
    """Return what of every run of an index was not read, or None for an index of one run or for a run."""
    from ..index.database import open_index
    from ..index.queries import runs
    from ..sources.places import is_database

    if not isinstance(place, Path) or not is_database(place):
        return None
    with closing(open_index(place)) as connection:
        known = runs(connection)
    return _of_all(place, known, as_json) if len(known) > 1 else None


def _of_all(database: Path, known: Sequence[Run], as_json: bool) -> Iterator[str]:
    from ..index.database import open_index
    from ..roots import Roots

    with closing(open_index(database)) as connection:
        yield from _told(connection, known, Roots.for_database(database), as_json, _how_to_list_all(database))


def _told(
    connection: sqlite3.Connection, runs: Sequence[Run], roots: Roots, as_json: bool, how: Sequence[str]
) -> Iterator[str]:
    """Yield a line of JSON for each problem and file, or what a person reads: those that are alike together.

    `how` says how each is listed, where some stand for others or are left out.
    """
    from ..index.problems import files_amiss, kinds_of_problems, problems

    count, states, is_all = 0, dict[str, int](), True
    for run in runs:
        name = {"run": run.name} if len(runs) > 1 else {}
        listed = problems if as_json else kinds_of_problems
        found = _by_names_of_now(listed(connection, run.id), run.root, roots)
        files = _by_names_of_now(files_amiss(connection, run.id), run.root, roots)
        if as_json:
            yield from (json_line({**name, **row, "state": None}) for row in found)
            yield from (json_line({**name, **row}) for row in files)
            continue
        before = f"{in_line(run.name)}: " if name else ""
        for _, kinds in groupby(found, lambda kind: kind["shard_id"]):
            of_file = list(kinds)
            count += sum(kind["problems"] for kind in of_file)
            is_all = is_all and all(kind["problems"] == 1 for kind in of_file) and len(of_file) <= MOST_OF_A_FILE
            yield from _of_file(before, of_file)
        for state, group in groupby(files, lambda file: file["state"]):
            in_state = list(group)
            states[state] = states.get(state, 0) + len(in_state)
            yield from _in_state(before, state, in_state)
    if not as_json:
        yield from [] if is_all else how
        yield "; ".join([plural(count, "problem"), *(f"{n:,} {CALLED[state][n != 1]}" for state, n in states.items())])


def _of_file(before: str, kinds: Sequence[Row]) -> Iterator[str]:
    """Yield the problems of a file, those that are alike as one."""
    for kind in kinds[:MOST_OF_A_FILE]:
        line = f" line {kind['line']:,}" if kind["line"] else ""
        if kind["problems"] > 1:
            noun, at = ("line", f"line {kind['line']:,}, ") if kind["line"] else ("problem", "")
            offset = "" if kind["byte_offset"] is None else f"offset {kind['byte_offset']:,}"
            first = f"{at}{offset}".removesuffix(", ")
            line = f": {plural(kind['problems'], noun)} like this{first and f', first at {first}'}"
        begins = kind["reason"].startswith(f"{kind['path']} ")  # what is said of a file that cannot be read names it
        yield from _line(before + (kind["reason"] if begins else f"{in_line(kind['path'])}{line}: {kind['reason']}"))
    if rest := kinds[MOST_OF_A_FILE:]:
        count = plural(sum(kind["problems"] for kind in rest), "problem")
        yield from _line(f"{before}{in_line(rest[0]['path'])}: {count} more, of {plural(len(rest), 'other kind')}")


def _in_state(before: str, state: str, files: Sequence[Row]) -> Iterator[str]:
    for file in files[:MOST_FILES]:
        said = f" line {file['line']:,}: {UNFINISHED}" if file["line"] else f": {file['reason']}"
        yield from _line(f"{before}{in_line(file['path'])}{said}")
    if more := len(files[MOST_FILES:]):
        yield from _line(f"{before}{plural(more, 'more file')} like this: state {state!r} in the table shards")


def _line(text: str) -> Iterator[str]:
    return wrapped(printable(text[:LONGEST]), screen_width())


def _how_to_list_all(database: Path, of_run: str = "") -> list[str]:
    return [
        "Each problem is a row of the table problems, and a line with --json:",
        f"  sqlite3 {quote(str(database))} 'select * from problems{of_run}'",
    ]


def _by_names_of_now(rows: Iterable[Row], root: str | Root, roots: Roots) -> Iterator[Row]:
    """Yield problems or files with the names that the files have now: one may have been sealed since it was indexed.

    Where the run's folder may not be read, they are the names that the index knows.
    """
    from ..roots import RootNotAllowed
    from ..sources.base import Locator
    from ..sources.files import file_there

    try:
        folder = roots.check(root)
    except RootNotAllowed:
        yield from rows
        return
    names: dict[str, str] = {}
    for row in rows:
        path = row["path"]
        if path not in names:
            names[path] = file_there(folder, Locator("", path, "", 0, 0))
        yield {**row, "path": names[path]}
