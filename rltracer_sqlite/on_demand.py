"""Reading a run when somebody asks for it, and only the steps that are asked for; and where its index then is."""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import sha256
from pathlib import PurePath
from typing import TYPE_CHECKING

from .sources.places import Root, real_place
from .user_folders import cache_folder

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .index.refresh import Progress, Refreshed
    from .sources.base import Source


def cached_index(root: Root) -> Path:
    """Return the place of a run's index in the user's cache folder, or in that of RLTRACER_HOME."""
    digest = sha256(str(real_place(root)).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return cache_folder() / f"{root.name or 'run'}-{digest}.sqlite"


def name_of_place(index: Path, root: str) -> str:
    """Return the name of what a person gave: an index file, or the run at `root` where the index is in the cache."""
    is_cached = index.parent.resolve() == cache_folder().resolve()
    return (PurePath(root).name if is_cached else index.name) or "DB"


@contextmanager
def brought_up_to_date(
    index: Path,
    source: Source,
    root: Root,
    doing: str,
    steps: Callable[[int | None], bool] = lambda step: True,
    progress: Progress | None = None,
    suggested_name: str | None = None,
) -> Iterator[tuple[sqlite3.Connection, Refreshed]]:
    """Read what is new in some steps of a run into an index; give it, open for writing, and what was done.

    Other writers are waited for, and told what is being done. The index is made where there is none, and left as one
    plain file. Raises SourceError and IndexFileError.
    """
    from .index.database import BUSY_SECONDS, finish_writing, open_for_writing
    from .index.lock import WriterLock
    from .index.refresh import refresh_run
    from .index.runs import ensure_run

    index.parent.mkdir(parents=True, exist_ok=True)
    with WriterLock(index, doing, wait=BUSY_SECONDS):
        connection = open_for_writing(index)
        try:
            run_id = ensure_run(connection, source, root, suggested=suggested_name)
            yield connection, refresh_run(connection, source, root, run_id, steps, progress=progress)
        finally:
            finish_writing(connection)
