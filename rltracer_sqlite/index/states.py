"""How complete the reading of a run is, in words: the same in the terminal and on pages."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from ..amounts import plural, ranges

COMPLETE = "read completely"
ENDED = "read to the end"  # of a run with problems: of some of its lines there is no row
LISTS_THEM = "rltracer inspect --problems lists them"
WAITING = "{} in the middle of a line"  # a line is read when its newline is there, and its file may never get one
# What is said of files by their state, of one and of several.
FILES = {
    "reading": ("not read to its end yet", "not read to their ends yet"),
    "waiting": (WAITING.format("ends"), WAITING.format("end")),
    "unread": ("could not be read", "could not be read"),
    "gone": ("gone since it was read", "gone since they were read"),
}
# The steps of those files whose places tell one, as JSON: [state, step], each pair once.
STEPS_AMISS = f"""
(
    select json_group_array(json_array(state, step)) from (
        select distinct state, step from {{schema}}.shards
        where run_id = r.id and step is not null and state in ({", ".join(f"'{state}'" for state in FILES)})
    )
) as steps_amiss
"""
STATES = f"""
select
    r.id, (select count(distinct ifnull(step, -1)) from {{schema}}.steps where run_id = r.id) as steps,
    (
        select count(distinct ifnull(step, -1)) from {{schema}}.steps where run_id = r.id and indexed_at is null
    ) as unread_steps,
    count(s.id) as files, ifnull(sum(s.state = 'reading'), 0) as reading,
    ifnull(sum(s.state = 'waiting'), 0) as waiting, ifnull(sum(s.state = 'unread'), 0) as unread,
    ifnull(sum(s.state = 'gone'), 0) as gone, ifnull(sum(s.problems), 0) as problems, {STEPS_AMISS.strip()}
from {{schema}}.runs r left join {{schema}}.shards s on s.run_id = r.id group by r.id order by r.id
"""


def state_words(row: Mapping[str, Any]) -> list[str]:
    """Return how complete the reading of a run is, in words: one entry when all is read and nothing is amiss.

    `row` has the run's `steps`, those of them that are not read, its `files`, how many of these are in each state, and
    its `problems`, of which is said only that there are some: `problem_words` counts them.
    """
    read = row["steps"] - row["unread_steps"]
    said = [f"{read:,} of {plural(row['steps'], 'step')} read"] if row["unread_steps"] else []
    said += file_words(row) if row["files"] else ["no file found yet"]
    return said or [ENDED if row.get("problems") else COMPLETE]


def file_words(row: Mapping[str, Any]) -> list[str]:
    """Return what is not as it should be with the files of a run, in words, and of which steps these are.

    `row` is as in `state_words`; it may have `steps_amiss`, which is as in `STEPS_AMISS`.
    """
    steps: dict[str, list[int]] = {}
    for state, step in json.loads(row.get("steps_amiss") or "[]"):
        steps.setdefault(state, []).append(step)
    return [
        f"{row[state]:,} of {plural(row['files'], 'file')} {of_one if row[state] == 1 else of_several}"
        + (f", of step{'s' * (len(steps[state]) > 1)} {ranges(steps[state])}" if state in steps else "")
        for state, (of_one, of_several) in FILES.items()
        if row[state]
    ]


def problem_words(row: Mapping[str, Any]) -> list[str]:
    """Return how many problems there are, in words; nothing where there is none."""
    return [plural(row["problems"], "problem")] if row["problems"] else []


def amiss(row: Mapping[str, Any], how: str = LISTS_THEM) -> str:
    """Return in one line what is said wherever figures of a run are: what of it was not read, and `how` to list it.

    "" where nothing is amiss; `row` as in `state_words`.
    """
    said = "; ".join([*problem_words(row), *file_words(row)])
    steps = f"{row['unread_steps']:,} of {plural(row['steps'], 'step')} not read yet." if row["unread_steps"] else ""
    return " ".join(filter(None, (f"{said}: {how}." if said else "", steps)))


def run_states(connection: sqlite3.Connection, schema: str = "main") -> dict[int, dict[str, Any]]:
    """Return how many steps and files of each run, by its number, are in each state, and its problems.

    `schema` is the name that the index is attached by.
    """
    cursor = connection.execute(STATES.format(schema=schema))
    names = [column[0] for column in cursor.description]
    return {row[0]: dict(zip(names, row, strict=True)) for row in cursor}


def waiting_words(files: int) -> str:
    """Return that so many files end in the middle of a line, which waits until it is complete."""
    return f"{plural(files, 'file')} {FILES['waiting'][files != 1]}"
