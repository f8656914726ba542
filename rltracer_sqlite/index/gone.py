"""Which files of a run have vanished or come back since they were indexed, and what becomes of their rows.

The rows of a file that has vanished stay, flagged as gone until it is back. What lies in a folder that cannot be listed
has not vanished: it cannot be asked for, and stays as it was. Of a file that gave nothing nothing stays.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from ..sources.base import Shard
from .database import transaction
from .plan import new_steps, read_again
from .unopened import is_noted


class Seen(NamedTuple):
    """A file that is indexed, and whether it is gone: by the index, and now."""

    shard_id: int
    file: str
    was_gone: bool
    is_gone: bool


class Marked(NamedTuple):
    """The files that have vanished, the shards that hold records of theirs too and are read again, and what is back."""

    gone: list[str]
    copies: set[int]
    back: set[int]


def mark_gone(connection: sqlite3.Connection, run_id: int, present: set[str]) -> Marked:
    """Flag the shards that have vanished and their rows, and unflag what is back."""
    copies: set[int] = set()
    seen = _seen(connection, run_id, present)
    back = {shard.shard_id for shard in seen if shard.was_gone and not shard.is_gone}
    if not all(shard.is_gone == shard.was_gone for shard in seen):
        with transaction(connection):
            copies = flag_shards(connection, run_id, present)
        seen = _seen(connection, run_id, present)
    return Marked([shard.file for shard in seen if shard.is_gone], copies, back)


def flag_shards(connection: sqlite3.Connection, run_id: int, present: Collection[str]) -> set[int]:
    """Do as `mark_gone` inside the caller's transaction; return the shards that are read again."""
    changed = [shard for shard in _seen(connection, run_id, present) if shard.is_gone != shard.was_gone]
    vanished = [shard.shard_id for shard in changed if shard.is_gone]
    _forget_never_read(connection, vanished)
    for shard in changed:
        # What has come back may have changed meanwhile: its size and time are compared as usual. One that was not
        # complete is looked into again, which an unknown time stands for: what waited from where it ended, what could
        # not be read or was set aside from its start, for which there is no hash.
        connection.execute(
            """
            update shards set
                mtime_ns = iif(state in ('complete', 'gone'), mtime_ns, 0),
                head_hash = iif(state in ('unread', 'aside'), null, head_hash),
                size = iif(state = 'waiting', indexed_bytes, size),
                state = ?
            where id = ?
            """,
            ("gone" if shard.is_gone else "complete", shard.shard_id),
        )
        connection.execute("update trajectories set gone = ? where shard_id = ?", (int(shard.is_gone), shard.shard_id))
    copies = _copies_of(connection, vanished)
    read_again(connection, copies)
    return copies


def is_listed(connection: sqlite3.Connection, run_id: int, shards: Collection[Shard]) -> bool:
    """Say whether these are the shards and steps that the index lists: none has come, vanished or come back."""
    seen = _seen(connection, run_id, {shard.path for shard in shards})
    is_known = all(shard.is_gone == shard.was_gone for shard in seen) and is_noted(connection, run_id, shards)
    return is_known and not new_steps(connection, run_id, shards)


def _seen(connection: sqlite3.Connection, run_id: int, present: Collection[str]) -> list[Seen]:
    known = connection.execute(
        """
        select s.id, s.path, s.file, s.state = 'gone', r.root from shards s join runs r on r.id = s.run_id
        where s.run_id = ?
        """,
        (run_id,),
    )
    return [
        Seen(shard_id, file, was_gone, path not in present and (was_gone or not _is_closed(root, path, present)))
        for shard_id, path, file, was_gone, root in known.fetchall()
    ]


def _is_closed(root: str, path: str, present: Collection[str]) -> bool:
    """Say whether a file lies in a folder that stands among the files, as it cannot be listed.

    A link to a folder outside of the run stands there too, and is not entered whoever asks: the file has vanished.
    """
    folder, slash, _ = path.rpartition("/")
    while slash:
        if folder in present and not folder.endswith(".jsonl"):  # that one is told as well, and listed as any other
            return not os.path.islink(os.path.join(root, folder))
        folder, slash, _ = folder.rpartition("/")
    return False


def _forget_never_read(connection: sqlite3.Connection, vanished: list[int]) -> None:
    """Delete the rows of files that gave nothing, set aside ones too, and the steps that were found by them alone."""
    never_read = """
        select id from shards s where id in (select value from json_each(:vanished))
            and state in ('unread', 'reading', 'aside') and records = 0 and indexed_bytes = 0
            and not exists (select 1 from trajectories t where t.shard_id = s.id)
            and not exists (select 1 from annotations a where a.shard_id = s.id)
    """
    rows = connection.execute(
        f"select id, run_id, step, split from shards where id in ({never_read})", {"vanished": json.dumps(vanished)}
    ).fetchall()
    for shard_id, *place in rows:
        connection.execute("delete from problems where shard_id = ?", (shard_id,))
        connection.execute("delete from shards where id = ?", (shard_id,))
        connection.execute(
            """
            delete from steps where run_id = ?1 and step is ?2 and split is ?3 and indexed_at is null
                and not exists (select 1 from shards where run_id = ?1 and step is ?2 and split is ?3)
            """,
            place,
        )


def flag_unread(connection: sqlite3.Connection, shard_id: int, held: Collection[int]) -> set[int]:
    """Flag the rows of a shard that cannot be read any more as those of one that is gone, but for those it `held`.

    Returns the shards that hold records of theirs too, which are read again.
    """
    connection.execute(
        """
        update trajectories set gone = 1
        where shard_id = ? and gone = 0 and id not in (select value from json_each(?))
        """,
        (shard_id, json.dumps(list(held))),
    )
    copies = _copies_of(connection, [shard_id])
    read_again(connection, copies)
    return copies


def _copies_of(connection: sqlite3.Connection, gone: list[int]) -> set[int]:
    """Return the shards that can be read and hold records of these, whose rows are flagged as gone."""
    rows = connection.execute(
        """
        select distinct a.shard_id from trajectories t
        join annotations a on a.trajectory_id = t.id and a.producer in ('effective', 'copy')
        join shards s on s.id = a.shard_id and s.state not in ('gone', 'unread')
        where t.shard_id in (select value from json_each(?)) and t.gone = 1
        """,
        (json.dumps(gone),),
    )
    return {shard_id for (shard_id,) in rows}
