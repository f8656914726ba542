"""What is said of runs of an index whose files have vanished, and how the index is told where they are now."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from ..amounts import plural

if TYPE_CHECKING:
    from ..index.vanished import Vanished
    from ..sources.places import Root


def if_moved(database: Path, run: str) -> str:
    """Return what to type where the files of a run are in another folder now."""
    command = f"rltracer runs {quote(str(database))} --move {quote(run)} FOLDER"
    return f" If the run is in another folder now:\n  {command}"


def if_any_moved(database: Path, names: Collection[str]) -> str:
    """Return `if_moved` for the first of some runs of an index whose folder is not there; "" where all are."""
    from ..index.database import open_index
    from ..index.queries import runs

    with closing(open_index(database)) as connection:
        away = (run.name for run in runs(connection) if run.name in names and _is_away(run.root))
        return next((if_moved(database, name) for name in away), "")


def _is_away(root: str) -> bool:
    try:
        return "://" not in root and not Path(root).exists()
    except OSError:
        return False


def flag_or_explain(database: Path, unread: list[tuple[Root, str]]) -> list[str]:
    """Return a sentence for each place with why nothing is read there, and flag the rows of runs that have vanished.

    The right to write to the database must be held.
    """
    found = _find(database, [root for root, _ in unread])
    if any(not run.is_flagged for run in found.values()):
        _flag(database, list(found.values()))
    return [_sentence(root, found[root], database) if root in found else why for root, why in unread]


def _find(database: Path, roots: list[Root]) -> dict[Root, Vanished]:
    from ..index.database import IndexFileError, open_index
    from ..index.vanished import find_vanished

    if not roots:
        return {}
    try:
        connection = open_index(database)
    except IndexFileError:
        return {}
    with closing(connection):
        return {root: run for root in roots if (run := find_vanished(connection, root)) is not None}


def _flag(database: Path, vanished: list[Vanished]) -> None:
    from ..index.database import begin_writing, finish_writing, open_for_writing
    from ..index.vanished import flag_vanished

    connection = open_for_writing(database)
    try:
        begin_writing(connection)
        for run in vanished:
            flag_vanished(connection, run)
    finally:
        finish_writing(connection)


def _sentence(root: Root, run: Vanished, database: Path) -> str:
    stay = f"{plural(run.trajectories, 'trajectory')} {'stays' if run.trajectories == 1 else 'stay'}"
    return (
        f"The run {root} has vanished: its {stay} in {database}, flagged as gone until it is back; rltracer runs "
        "--move tells where it is now."
    )
