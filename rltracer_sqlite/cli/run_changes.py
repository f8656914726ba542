"""Removing a run from an index, and telling it where the files of one are now: each one transaction or nothing."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from ..amounts import plural
from ..arguments import shown
from .say import say
from .visible import in_line, printable

if TYPE_CHECKING:
    from ..index.queries import Run
    from ..sources.places import Root

MOST_NAMED = 5


def remove_run(database: Path, name: str, is_sure: bool) -> None:
    """Delete a run, after asking whether that is meant. Raises UsageError where nobody can be asked."""
    from ..index.database import transaction
    from ..index.removing import delete_run
    from ..search.tables import forget_run

    run, count = _chosen(database, name)
    what = f"{in_line(run.name)} ({plural(count, 'trajectory')}, {in_line(run.root)})"
    if not is_sure and not _agrees(f"Remove {what} from {database}? Its files stay."):
        say("Nothing was removed.", err=True)
        sys.exit(1)
    with _writing(database, f"removing {run.name}") as connection:
        with transaction(connection):
            _check_unchanged(connection, run)
            has_words = forget_run(connection, run.id)
            delete_run(connection, run.id)
        with suppress(sqlite3.OperationalError):  # a full disk, or a reader: the room is used by what comes next
            connection.execute("vacuum")
    say(f"Removed {what}. Its files are where they were.")
    if has_words:
        say("Its words are still in the full text, where nothing finds them, until it is built anew:")
        say(f"  rltracer fts {quote(str(database))} --rebuild")


def move_run(database: Path, name: str, root: Root) -> None:
    """Let the files of a run be those at `root`. Raises SourceError where they are not the same."""
    from ..index import moving
    from .indexing import remember

    run, count = _chosen(database, name)
    with _writing(database, f"moving {run.name}") as connection:
        _check_unchanged(connection, run)
        _check_place(connection, run, root)
        gone = moving.move_run(connection, run, root)
    remember(root, None)
    say(f"{in_line(run.name)} is at {in_line(str(root.resolve()))} now; {plural(count, 'trajectory')} kept.")
    if gone:
        more = f" and {len(gone) - MOST_NAMED} more" if len(gone) > MOST_NAMED else ""
        say(f"Not there, and flagged as gone: {', '.join(map(in_line, gone[:MOST_NAMED]))}{more}")


def _check_place(connection: sqlite3.Connection, run: Run, root: Root) -> None:
    """Raise SourceError where a run cannot be at a place: there is nothing, it is there already, or another one is."""
    from ..index.queries import runs
    from ..index.runs import refuse_nested
    from ..sources import missing
    from ..sources.base import SourceError
    from ..sources.places import place

    if not root.exists():
        raise SourceError(missing(root))
    where, others = str(root.resolve()), []
    for other in runs(connection):
        if other.root == where:
            why = (
                "is there already."
                if other.id == run.id
                else f"cannot be where {other.name} is: remove that one first."
            )
            raise SourceError(f"{run.name} {why}")
        if other.id != run.id:
            with suppress(SourceError):  # a kind of place that this version does not read
                others.append((other.name, place(other.root)))
    refuse_nested(others, root)


def _chosen(database: Path, name: str) -> tuple[Run, int]:
    """Return a run by its whole name or its number, and how many trajectories it has. Raises WhichRunError.

    The beginning of a name is not enough here: given twice, it would mean another run than the one that is gone.
    """
    from ..index.database import open_index
    from ..index.queries import runs
    from ..runs import WhichRunError
    from .chosen_runs import chosen_runs

    with closing(open_index(database)) as connection:
        [(run_id, called)] = chosen_runs(connection, name, database)
        if name not in (called, str(run_id)):
            raise WhichRunError(f"{shown(name)} is the beginning of {called}: give its whole name.")
        count = connection.execute("select count(*) from trajectories where run_id = ?", (run_id,)).fetchone()[0]
        return next(run for run in runs(connection) if run.id == run_id), int(count)


def is_answered() -> bool:
    """Say whether somebody is there to answer a question."""
    return sys.stdin.isatty()


def _agrees(question: str) -> bool:
    if not is_answered():
        raise click.UsageError("--remove asks first, and here is nobody to answer: give --yes.")
    return click.confirm(printable(question), err=True)


def _check_unchanged(connection: sqlite3.Connection, run: Run) -> None:
    """Raise SourceError where somebody has changed or removed a run since it was chosen."""
    from ..index.queries import runs
    from ..sources.base import SourceError

    if run not in runs(connection):
        raise SourceError(f"{run.name} was changed by another program meanwhile: look at it again.")


@contextmanager
def _writing(database: Path, purpose: str) -> Iterator[sqlite3.Connection]:
    """Open an index to change a run of it, which nobody else may be writing to or watching."""
    from ..index.database import BUSY_SECONDS, begin_writing, finish_writing, open_for_writing
    from ..index.lock import WATCHING, WriterLock

    with WriterLock(database, purpose, right=WATCHING), WriterLock(database, purpose, wait=BUSY_SECONDS):
        connection = open_for_writing(database)
        try:
            begin_writing(connection)
            yield connection
        finally:
            finish_writing(connection)
