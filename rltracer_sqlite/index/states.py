"""How complete the reading of a run is, in words: the same in the terminal and on pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from ..amounts import plural

COMPLETE = "read completely"
WAITING = "{} in the middle of a line"  # a line is read when its newline is there, and its file may never get one
# What is said of files by their state, of one and of several.
FILES = {
    "reading": ("not read to its end yet", "not read to their ends yet"),
    "waiting": (WAITING.format("ends"), WAITING.format("end")),
    "unread": ("could not be read", "could not be read"),
    "gone": ("gone since it was read", "gone since they were read"),
}
STATES = """
select
    r.id, (select count(distinct ifnull(step, -1)) from steps where run_id = r.id) as steps,
    (select count(distinct ifnull(step, -1)) from steps where run_id = r.id and indexed_at is null) as unread_steps,
    count(s.id) as files, ifnull(sum(s.state = 'reading'), 0) as reading,
    ifnull(sum(s.state = 'waiting'), 0) as waiting, ifnull(sum(s.state = 'unread'), 0) as unread,
    ifnull(sum(s.state = 'gone'), 0) as gone
from runs r left join shards s on s.run_id = r.id group by r.id order by r.id
"""


def state_words(row: Mapping[str, Any]) -> list[str]:
    """Return how complete the reading of a run is, in words: one entry when all is read and nothing is amiss.

    `row` has the run's `steps`, those of them that are not read, its `files`, and how many of these are in each state.
    """
    read = row["steps"] - row["unread_steps"]
    said = [f"{read:,} of {plural(row['steps'], 'step')} read"] if row["unread_steps"] else []
    said += file_words(row) if row["files"] else ["no file found yet"]
    return said or [COMPLETE]


def file_words(row: Mapping[str, Any]) -> list[str]:
    """Return what is not as it should be with the files of a run, in words; `row` as in `state_words`."""
    return [
        f"{row[state]:,} of {plural(row['files'], 'file')} {of_one if row[state] == 1 else of_several}"
        for state, (of_one, of_several) in FILES.items()
        if row[state]
    ]


def run_states(connection: sqlite3.Connection) -> dict[int, dict[str, int]]:
    """Return how many steps and files of each run, by its number, are in each state."""
    cursor = connection.execute(STATES)
    names = [column[0] for column in cursor.description]
    return {row[0]: dict(zip(names, row, strict=True)) for row in cursor}


def waiting_words(files: int) -> str:
    """Return that so many files end in the middle of a line, which waits until it is complete."""
    return f"{plural(files, 'file')} {FILES['waiting'][files != 1]}"
