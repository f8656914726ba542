"""What is said of places where nothing can be indexed: whether one is a run of the index that has vanished."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ..amounts import plural

if TYPE_CHECKING:
    from ..index.vanished import Vanished
    from ..sources.places import Root


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
