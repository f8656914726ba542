"""What of a run was not read: its problems, those that are alike together, and files that wait, are gone or aside."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from ..amounts import plural
from .repeats import STANDS_AGAIN, THE_ID
from .states import IS_EMPTY, TOLD

# Reasons are alike where they differ in numbers only, such as those of bytes and of lines, or in the id of a record.
WHATEVER_ID = f"""
iif(reason like '{THE_ID}%{STANDS_AGAIN}%', substr(reason, instr(reason, '{STANDS_AGAIN}')), reason)
"""
ALIKE = reduce(lambda text, digit: f"replace({text}, '{digit}', '')", "0123456789", WHATEVER_ID)
# Why a file is left aside is a row too, but no problem where the reason is a known one.
OF_RUN = "problems p join shards s on s.id = p.shard_id where s.run_id = :run_id and s.problems > 0"
COLUMNS = "path, line, byte_offset, byte_length, reason, shard_id"
# SQLite takes the columns beside the least id from its row. What is equal is put together first, which is quick. Of
# `{most}` problems at most, or of all of them (-1).
KINDS = f"""
with found as (
    select p.*, s.file as path, s.step, s.path as known_by from {OF_RUN} limit {{most}}
),
equal as (
    select {COLUMNS}, step, known_by, count(*) as problems, min(id) as id from found group by shard_id, reason
)
select {COLUMNS}, step, known_by, sum(problems) as problems, min(id) as id from equal group by shard_id, {ALIKE}
"""
REASONS = {
    "waiting": "has an unfinished last line, which is read when it is complete",
    "gone": "has vanished",
    "reading": "was not read to its end yet",
    "unread": "could not be read",
    "aside": "no rollouts",
    "empty": "is empty: its writer may have died, or has not written yet",
}
# How many rows there are whose record stands in no other file that can be read.
KEPT = "iif(s.state = 'gone', (select count(*) from trajectories t where t.shard_id = s.id), null)"
# Of a file that could not be read the reason is a problem, unless its reading was stopped. Files that are left aside
# may be thousands, and hide no other.
FILES = f"""
select
    s.file as path, iif(s.state = 'waiting', s.lines + 1, null) as line,
    iif(s.state in ('waiting', 'reading'), s.indexed_bytes, null) as byte_offset, null as byte_length,
    iif(s.state = 'aside', p.reason, null) as reason, {TOLD} as state, s.id as shard_id, {KEPT} as kept
from shards s left join problems p on p.shard_id = s.id and p.line is null
where s.run_id = :run_id and (
    s.state in ('waiting', 'gone', 'reading') or (s.state = 'aside' and s.problems = 0)
    or (s.state = 'unread' and p.id is null) or {IS_EMPTY})
group by s.id order by s.state = 'aside', {TOLD}, s.step, s.path
"""


def problems(connection: sqlite3.Connection, run_id: int) -> Iterator[dict[str, Any]]:
    """Yield what could not be read of a run, in the order of its files."""
    columns = "s.file as path, p.line, p.byte_offset, p.byte_length, p.reason"
    return _rows(connection, f"select {columns} from {OF_RUN} order by s.step, s.path, p.id", run_id)


def kinds_of_problems(connection: sqlite3.Connection, run_id: int) -> Iterator[dict[str, Any]]:
    """Yield the first of the problems of a file that are alike, and how many `problems` these are; most first."""
    return _rows(connection, f"{KINDS.format(most=-1)} order by step, known_by, problems desc, id", run_id)


def files_amiss(connection: sqlite3.Connection, run_id: int) -> Iterator[dict[str, Any]]:
    """Yield the files of a run that wait, are gone, were left aside or not read, without being a problem, and why.

    Of one that waits, `line` and `byte_offset` are where the line begins that is not complete.
    """
    for file in _rows(connection, FILES, run_id):
        reason = why_amiss(file)
        del file["shard_id"], file["kept"]
        yield {**file, "reason": reason}


def gone_files(connection: sqlite3.Connection, run_id: int) -> list[tuple[str, str]]:
    """Return the files of a run that have vanished, each with what has become of its rows."""
    sql = f"select s.file, s.state, {KEPT} as kept from shards s where s.run_id = :run_id and s.state = 'gone'"
    return [(file["file"], why_amiss(file)) for file in _rows(connection, f"{sql} order by s.step, s.path", run_id)]


def empty_files(connection: sqlite3.Connection, run_id: int) -> list[str]:
    """Return the files of a run that should hold records, and have no byte."""
    sql = f"select s.file from shards s where s.run_id = ? and {IS_EMPTY} order by s.step, s.path"
    return [file for (file,) in connection.execute(sql, (run_id,))]


def why_amiss(file: Mapping[str, Any]) -> str:
    """Return why a file of `FILES` is among them: of one that is aside, what it holds."""
    if file["state"] == "gone":
        return f"{REASONS['gone']}; {_kept_words(file['kept'])}"
    return f"left aside: {file['reason'] or REASONS['aside']}" if file["state"] == "aside" else REASONS[file["state"]]


def _kept_words(count: int) -> str:
    """Return how many rows of a file that has vanished stay, flagged: those that were in no other file."""
    if not count:
        return "no trajectory was in it alone"
    stays = "was in it alone and stays" if count == 1 else "were in it alone and stay"
    return f"{plural(count, 'trajectory')} {stays}, flagged as gone"


def _rows(connection: sqlite3.Connection, sql: str, run_id: int) -> Iterator[dict[str, Any]]:
    rows = connection.execute(sql, {"run_id": run_id})
    names = [column[0] for column in rows.description]
    return (dict(zip(names, row, strict=True)) for row in rows)
