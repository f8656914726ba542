"""Telling an index that the files of a run are at another place now: the same files, by the indexer's own measure."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..sources.base import PACKED, SourceError
from ..sources.files import open_shard
from ..sources.places import Root, file_status
from .database import transaction
from .gone import flag_shards
from .plan import fingerprints
from .queries import Run

MISSING, OTHER, SAME = "is not there", "is another file", ""


class Kept(NamedTuple):
    """What is kept of a shard that has to be found again."""

    path: str
    state: str
    indexed_bytes: int
    head_hash: str | None
    tail_hash: str | None

    @property
    def is_known(self) -> bool:
        """Say whether something of what was read can be compared; else the next indexing reads it from its start."""
        return self.head_hash is not None and self.indexed_bytes > 0 and self.state != "unread"


def move_run(connection: sqlite3.Connection, run: Run, root: Root) -> list[str]:
    """Let a run's files be those at `root`, and return the paths of those that had vanished and are not there either.

    Every file that has not vanished has to be there, at least as long as what was read of it, and with the same first
    and last 4 KiB of that. Every row keeps its id. A file of another size or time is looked into by the next indexing.
    Raises SourceError, and changes nothing then.
    """
    shards = _shards(connection, run.id)
    found = {shard.path: _compared(root, shard) for shard in shards}
    wrong = {
        shard.path: what
        for shard in shards
        if (what := found[shard.path]) == OTHER or (what == MISSING and shard.state != "gone")
    }
    if wrong:
        path, what = next(iter(wrong.items()))
        raise SourceError(
            f"The folder {root} does not hold the files of the run {run.name}: {path} {what}{_more(len(wrong) - 1)}."
        )
    if not any(shard.is_known and found[shard.path] == SAME for shard in shards):
        raise SourceError(f"The folder {root} holds none of the files of the run {run.name}.")
    present = {path for path, what in found.items() if what == SAME}
    with transaction(connection):
        connection.execute(
            "update runs set root = ?, tokenizer = ? where id = ?",
            (str(root.resolve()), _moved_tokenizer(run, root), run.id),
        )
        flag_shards(connection, run.id, present)
    return [path for path in found if path not in present]


def _shards(connection: sqlite3.Connection, run_id: int) -> list[Kept]:
    rows = connection.execute(
        f"select {', '.join(Kept._fields)} from shards where run_id = ? order by step, path", (run_id,)
    )
    return [Kept(*row) for row in rows]


def _compared(root: Root, shard: Kept) -> str:
    if not _is_there(root, shard.path):
        return MISSING
    if not shard.is_known:
        return SAME
    try:
        with open_shard(root, shard.path) as reader:
            hashes = fingerprints(reader, shard.indexed_bytes)
    except (SourceError, OSError, ValueError):
        return OTHER
    return SAME if hashes == (shard.head_hash, shard.tail_hash) else OTHER


def _is_there(root: Root, path: str) -> bool:
    for file in (path, path + PACKED):
        with suppress(SourceError, OSError, ValueError):
            file_status(root)(file)
            return True
    return False


def _more(count: int) -> str:
    return f", and {count:,} more" if count else ""


def _moved_tokenizer(run: Run, root: Root) -> str | None:
    """Return the place of a run's tokenizer: one inside of the run has moved with it."""
    if run.tokenizer is None or not isinstance(root, Path):
        return run.tokenizer
    inside = Path(run.tokenizer)
    if not inside.is_relative_to(run.root):
        return run.tokenizer
    moved = root.resolve() / inside.relative_to(run.root)
    return str(moved) if moved.exists() else run.tokenizer
