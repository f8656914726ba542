"""Files of a run that are left aside by their names: each is a row with the reason, and none is opened.

They have no step and no size in the index: no step has to be read for them, and nothing is asked of the file system.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..sources.base import Shard, Source
from ..sources.other_files import is_other
from ..sources.places import Root, real_place
from .database import REBUILDING, transaction
from .states import NOT_OPENED

KNOWN = f"""
select s.id, s.path, s.file, p.reason from shards s left join problems p on p.shard_id = s.id and p.line is null
where s.run_id = ? and {NOT_OPENED}
"""
# A file may have been looked into before, and have given nothing.
NOTE = """
insert into shards (run_id, path, file, layout, size, mtime_ns, state) values (?, ?, ?, ?, 0, 0, 'aside')
on conflict (run_id, path) do update set
    file = excluded.file, layout = excluded.layout, producer = null, step = null, split = null, size = 0, mtime_ns = 0,
    head_hash = null, tail_hash = null, indexed_bytes = 0, lines = 0, problems = 0, state = 'aside'
"""
REASON = "insert into problems (reason, shard_id) select ?, id from shards where run_id = ? and path = ?"


class News(NamedTuple):
    """What is new among the files that are left aside: those to be noted, and the rows of which nothing holds now."""

    come: list[Shard]
    left: list[int]  # rows of files that are read now
    other: list[int]  # rows of files that have come which say something else


def listed_shards(connection: sqlite3.Connection, source: Source, root: Root) -> list[Shard]:
    """Return the shards of a run, apart from the index itself: it may lie in the run's folder, and is no file of it."""
    shards = list(source.shards(root))
    if not isinstance(root, Path) or not any(map(is_other, shards)):
        return shards
    own = Path(connection.execute("select file from pragma_database_list where name = 'main'").fetchone()[0])
    # While it is rebuilt it lies beside the one whose place it takes.
    names = {own.name, own.name.removesuffix(REBUILDING)}
    folder = real_place(own).parent

    def is_own(shard: Shard) -> bool:
        place = root / shard.file
        return is_other(shard) and place.name in names and real_place(place).parent == folder

    return [shard for shard in shards if not is_own(shard)]


def note_unopened(connection: sqlite3.Connection, run_id: int, shards: Iterable[Shard]) -> None:
    """Keep which of these shards are left aside, and why, and forget those that are so no more."""
    news = _news(connection, run_id, shards)
    if not any(news):
        return
    with transaction(connection):
        connection.executemany("delete from problems where shard_id = ?", [(row,) for row in news.left + news.other])
        connection.executemany("delete from shards where id = ?", [(row,) for row in news.left])
        connection.executemany(NOTE, [(run_id, shard.path, shard.file, shard.layout) for shard in news.come])
        connection.executemany(REASON, [(_reason(shard), run_id, shard.path) for shard in news.come])


def is_noted(connection: sqlite3.Connection, run_id: int, shards: Iterable[Shard]) -> bool:
    """Say whether the index lists just those of these shards as left aside that are."""
    return not any(_news(connection, run_id, shards))


def _news(connection: sqlite3.Connection, run_id: int, shards: Iterable[Shard]) -> News:
    known = {path: (row, file, reason) for row, path, file, reason in connection.execute(KNOWN, (run_id,))}
    come, left = list[Shard](), list[int]()
    for shard in shards:
        before = known.get(shard.path)
        if shard.aside and (before is None or before[1:] != (shard.file, _reason(shard))):
            come.append(shard)
        elif before is not None and not shard.aside:
            left.append(before[0])
    if not come:
        return News(come, left, [])
    rows = connection.execute("select path, id, records > 0 from shards where run_id = ?", (run_id,))
    listed = {path: (row, gave) for path, row, gave in rows}
    # What has given something stays as it was read.
    come = [shard for shard in come if not listed.get(shard.path, (0, False))[1]]
    return News(come, left, [listed[shard.path][0] for shard in come if shard.path in listed])


def _reason(shard: Shard) -> str:
    return shard.aside[:500]
