"""`rltracer-index --rebuild`: an index anew in a file beside the old one, which it replaces when it is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..amounts import listed
from .indexing import Indexed, index_runs

if TYPE_CHECKING:
    from ..sources.places import Root
    from .asked import Options


def rebuild_index(database: Path, roots: tuple[Root, ...], options: Options) -> Indexed:
    """Index into a file beside the database, and put it in its place when every run gave trajectories."""
    from ..index.database import remove_database, replace_database

    searchable = _check_all_named(database, roots)
    options = replace(options, fts=options.fts or searchable)
    beside = beside_of(database)
    try:
        done = index_runs(beside, roots, options, database)
        if done.every_run:
            replace_database(beside, database)
        return done
    finally:
        remove_database(beside)


def beside_of(database: Path) -> Path:
    """Return the file that a database is rebuilt in."""
    from ..index.database import REBUILDING

    return Path(f"{database}{REBUILDING}")


def _check_all_named(database: Path, roots: tuple[Root, ...]) -> bool:
    """Refuse to rebuild a database that holds further runs: they would be gone. Say whether it holds full text."""
    from ..index.database import IndexFileError, open_index
    from ..index.queries import runs
    from ..search import has_old_text, has_text
    from ..sources.places import real_place

    if not database.exists():
        return False
    connection = open_index(database)
    try:
        named = {str(real_place(root)) for root in roots}
        others = [known.root for known in runs(connection) if known.root not in named]
        searchable = has_text(connection) or has_old_text(connection)
    finally:
        connection.close()
    if others:
        raise IndexFileError(f"{database} also holds {listed(others)}: name these runs too to rebuild it.")
    return searchable
