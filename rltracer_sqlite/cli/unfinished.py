"""What an indexing that was stopped leaves: asked of the index itself, when all that was writing to it has ended."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ..amounts import plural

if TYPE_CHECKING:
    from ..sources.places import Root


class Unfinished:
    """Returns, when it is called, a sentence on what an indexing of `roots` has left; made before that begins."""

    def __init__(self, database: Path, roots: tuple[Root, ...], is_rebuilding: bool = False) -> None:
        self.database, self.roots, self.is_rebuilding = database, roots, is_rebuilding
        self.before = _identity(database)

    def __call__(self) -> str:
        # A rebuilding writes to a file beside this one, and puts it here at its end.
        if self.is_rebuilding and self.before is not None and _identity(self.database) == self.before:
            return f"{self.database} is as it was."
        trajectories, files = self._counts()
        if not trajectories:
            return "Nothing was written."
        are = "is" if trajectories == 1 else "are"
        what = f"{plural(trajectories, 'trajectory')} of {plural(files, 'file')} {are}"
        return f"{what} in {self.database}; run the same command again to go on."

    def _counts(self) -> tuple[int, int]:
        """Return how many trajectories of how many files of the runs are in the index."""
        import sqlite3

        from ..index.database import IndexFileError, open_index
        from ..sources.places import real_place

        try:
            with closing(open_index(self.database)) as connection:
                trajectories, files = connection.execute(
                    """
                    select count(*), count(distinct shard_id) from trajectories t join runs r on r.id = t.run_id
                    where r.root in (select value from json_each(?))
                    """,
                    (json.dumps([str(real_place(root)) for root in self.roots]),),
                ).fetchone()
        except (IndexFileError, sqlite3.Error):  # none, or one that was stopped before it had its tables
            return 0, 0
        return int(trajectories), int(files)


def _identity(database: Path) -> tuple[int, int, int] | None:
    """Return what tells a file from any other that is put in its place, and None where there is none."""
    try:
        status = os.stat(database)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns
