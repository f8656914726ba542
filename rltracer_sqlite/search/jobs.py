"""What there is to read for the full text: the shards that are new, have grown or were rewritten since."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..index.plan import fingerprints
from ..index.queries import Run, runs
from ..loading import run_source
from ..roots import Roots
from ..sources import missing
from ..sources.base import Source, SourceError
from ..sources.files import open_shard
from ..sources.places import Root
from .tables import DIGESTS, SHARDS


class TextShard(NamedTuple):
    """A shard with texts to read."""

    id: int
    path: str
    layout: str
    state: tuple[Any, ...]  # size, mtime_ns, indexed_bytes, head_hash, tail_hash as the index has them
    before: tuple[Any, ...]  # the same when its texts were last read; Nones where they never were


class Job(NamedTuple):
    """One shard of a run, and how many bytes of records of it are to be read."""

    source: Source
    root: Root
    shard: TextShard
    only_new: bool  # it still begins with what was read
    bytes: int


@dataclass
class Work:
    """What there is to do. `unread` are runs with something new that cannot be read, and why."""

    jobs: list[Job] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    is_all: bool = True  # every run can be read, also those with nothing new


def find_work(connection: sqlite3.Connection, roots: Roots) -> Work:
    """Return the shards with texts to read."""
    work = Work()
    for run in runs(connection):
        shards = list(_shards(connection, run))
        try:
            root, source = _place(run, roots)
        except SourceError as error:
            work.is_all = False
            if shards:
                work.unread[run.name] = str(error)
            continue
        for shard in shards:
            only_new = _still_begins(root, shard)
            work.jobs.append(Job(source, root, shard, only_new, _bytes(connection, shard, only_new)))
    return work


def count_rewritten(connection: sqlite3.Connection, roots: Roots) -> int:
    """Return how many searchable trajectories are in files that were rewritten since, and may say something else."""
    jobs = find_work(connection, roots).jobs
    # A shard without a size before was never read; one of which the times differ alone was only touched.
    rewritten = [one.shard for one in jobs if not one.only_new and one.shard.before[0] is not None]
    question = f"""
        select count(*) from trajectories t
        where shard_id = ? and exists (select 1 from {DIGESTS} d where d.trajectory_id = t.id)
    """
    changed = [shard.id for shard in rewritten if shard.before[2:] != shard.state[2:]]
    return sum(int(connection.execute(question, (number,)).fetchone()[0]) for number in changed)


def _place(run: Run, roots: Roots) -> tuple[Root, Source]:
    root = roots.check(run.root)
    if not root.exists():
        raise SourceError(missing(root))
    return root, run_source(run, roots)


def _bytes(connection: sqlite3.Connection, shard: TextShard, only_new: bool) -> int:
    new = f"and not exists (select 1 from {DIGESTS} d where d.trajectory_id = t.id)" if only_new else ""
    found = connection.execute(
        f"select ifnull(sum(byte_length), 0) from trajectories t where shard_id = ? {new}", (shard.id,)
    )
    return int(found.fetchone()[0])


def _shards(connection: sqlite3.Connection, run: Run) -> Iterator[TextShard]:
    """Yield the shards of a run that hold records which can be read, and have changed since their texts were read."""
    found = connection.execute(
        f"""
        select s.id, s.path, s.layout, s.size, s.mtime_ns, s.indexed_bytes, s.head_hash, s.tail_hash,
            x.size, x.mtime_ns, x.indexed_bytes, x.head_hash, x.tail_hash
        from shards s left join {SHARDS} x on x.shard_id = s.id
        where s.run_id = ? and exists (select 1 from trajectories t where t.shard_id = s.id and t.gone = 0)
        order by s.id
        """,
        (run.id,),
    ).fetchall()
    for row in found:
        shard = TextShard(row[0], row[1], row[2], row[3:8], row[8:])
        if shard.state != shard.before:
            yield shard


def _still_begins(root: Root, shard: TextShard) -> bool:
    """Say whether a shard still begins with what was read of it, by the rule of the index itself."""
    size, _, length, head, tail = shard.before
    if size is None or size == shard.state[0] or head is None:
        return False
    try:
        with open_shard(root, shard.path) as reader:
            return fingerprints(reader, length) == (head, tail)
    except (SourceError, OSError):
        return False
