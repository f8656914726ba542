"""How complete the reading of a run is, in words: the same in the terminal and on pages."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Any

from ..amounts import plural, ranges
from .without_text import WITHOUT_TEXT, needs_tokenizer

COMPLETE = "read completely"
ENDED = "read to the end"  # of a run with problems: of some of its lines there is no row, or a row without text
# What is said of files by their state, of one and of several.
FILES = {
    "reading": ("not read to its end yet", "not read to their ends yet"),
    # A line is read when its newline is there, and its file may never get one.
    "waiting": ("has an unfinished last line", "have an unfinished last line"),
    "unread": ("could not be read", "could not be read"),
    "gone": ("gone since it was read", "gone since they were read"),
    "empty": ("is empty", "are empty"),
}
# A file that should hold records and has none: its writer may have died, or has not written yet.
IS_EMPTY = "(s.state = 'complete' and s.size = 0 and s.producer is null)"
# A file that is left aside by its name alone; one that was looked into has a size.
NOT_OPENED = "(state = 'aside' and size = 0)"
TOLD = f"iif({IS_EMPTY}, 'empty', s.state)"
# How many files are in each state that is told, how many are left aside and no problem, the problems of them all, and
# how many of these say no more than that a file could not be read; `s` are the rows of shards.
COUNTS = (*FILES, "aside", "problems", "unread_problems")
COUNTED_STATES = f"""
count(s.id) as files, {", ".join(f"ifnull(sum({TOLD} = '{state}'), 0) as {state}" for state in FILES)},
ifnull(sum(s.state = 'aside' and s.problems = 0), 0) as aside, ifnull(sum(s.problems), 0) as problems,
ifnull(sum(s.state = 'unread' and s.problems > 0), 0) as unread_problems
"""
# The steps of those files, and of files with problems, whose places tell one, as JSON: [state, step], each pair once.
STEPS_AMISS = f"""
(
    select json_group_array(json_array(state, step)) from (
        select distinct {TOLD} as state, step from {{schema}}.shards s
        where run_id = r.id and step is not null and {TOLD} in ({", ".join(f"'{state}'" for state in FILES)})
        union select 'problems', step from {{schema}}.shards
        where run_id = r.id and step is not null and problems > (state = 'unread')
    )
) as steps_amiss
"""
# How many steps there are, how many of them are not read, and of these how many were not tried either.
COUNTED_STEPS = """
(select count(distinct ifnull(step, -1)) from {schema}.steps where run_id = r.id) as steps,
(
    select count(distinct ifnull(step, -1)) from {schema}.steps where run_id = r.id and indexed_at is null
) as unread_steps,
(
    select count(distinct ifnull(step, -1)) from (
        select step, split from {schema}.steps where run_id = r.id and indexed_at is null
        except select step, split from {schema}.shards where run_id = r.id and state = 'unread'
    )
) as untried_steps
"""
# Of each step and split whether its reading was tried, and failed; `steps` is its row.
FAILED = """
{steps}.indexed_at is null and (ifnull({steps}.step, -1), ifnull({steps}.split, '')) in (
    select ifnull(step, -1), ifnull(split, '') from shards where run_id = :run_id and state = 'unread'
)
"""
STATES = f"""
select r.id, {COUNTED_STEPS.strip()}, {COUNTED_STATES.strip()}, {STEPS_AMISS.strip()}, {WITHOUT_TEXT.strip()}
from {{schema}}.runs r left join {{schema}}.shards s on s.run_id = r.id group by r.id order by r.id
"""
# A file whose place tells no step, or no split, may hold any.
MAY_BE_OF_SPLIT = "(:split is null or s.split is :split or s.split is null)"
MAY_BE_OF_STEP = f"""
s.run_id = :run_id and (s.step is :step or s.step is null) and {MAY_BE_OF_SPLIT} and not {NOT_OPENED}
"""
OF_STEP = f"""
select ifnull(sum(s.step is null), 0) as stepless, {COUNTED_STATES.strip()}
from shards s where {MAY_BE_OF_STEP} and not ({{told}})
"""
# The same of all steps of a run at once, by step and split of the files' places.
OF_STEPS = f"""
select s.step, s.split, {COUNTED_STATES.strip()} from shards s
where s.run_id = :run_id and {{of_step}} group by s.step, s.split
"""


def state_words(row: Mapping[str, Any]) -> list[str]:
    """Return how complete the reading of a run is, in words: one entry when all is read and nothing is amiss.

    `row` has what `COUNTED_STEPS` counts, the run's `files`, how many of these are in each state, and its `problems`,
    of which is said only that there are some: `problem_words` counts them. A step that was tried, and could not be
    read, is one that its files tell of. `without_text` is as in `WITHOUT_TEXT`.
    """
    read = row["steps"] - row["unread_steps"]
    said = [f"{read:,} of {plural(row['steps'], 'step')} read"] if row["untried_steps"] else []
    said += file_words(row) if row["files"] else ["no file found yet"]
    text = text_words(row)
    return [*(said or [ENDED if text or row.get("problems") else COMPLETE]), *text]


def text_words(row: Mapping[str, Any], how: str = "rltracer-index --tokenizer PATH") -> list[str]:
    """Return how many trajectories of a run have no text, and `how` to get it; nothing where all have one."""
    return [f"{needs_tokenizer(row['without_text'])}: {how}"] if row.get("without_text") else []


def file_words(row: Mapping[str, Any]) -> list[str]:
    """Return what is not as it should be with the files of a run, in words, and of which steps these are.

    `row` is as in `state_words`; it may have `steps_amiss`, which is as in `STEPS_AMISS`. Of a single step it may have
    how many of its files are `stepless`: these may hold any.
    """
    files = plural(row["files"], "file") + (" that may hold it" if row.get("stepless") else "")
    return [
        f"{row[state]:,} of {files} {of_one if row[state] == 1 else of_several}{_steps_amiss(row, state, 'of')}"
        for state, (of_one, of_several) in FILES.items()
        if row.get(state)
    ]


def _steps_amiss(row: Mapping[str, Any], state: str, word: str) -> str:
    steps = [step for what, step in json.loads(row.get("steps_amiss") or "[]") if what == state]
    return f", {word} step{'s' * (len(steps) > 1)} {ranges(steps)}" if steps else ""


def problem_words(row: Mapping[str, Any]) -> list[str]:
    """Return how many problems there are, in words, without those that `file_words` tells; nothing for none."""
    count = row["problems"] - row["unread_problems"]
    return [plural(count, "problem")] if count else []


def lists_them(place: str, run: str | None = None) -> str:
    """Return which command lists what of a run was not read; `run` names it where the index at `place` has several."""
    which = "" if run is None else f" --run {quote(run)}"
    return f"rltracer inspect {quote(place)}{which} --problems lists them"


def amiss(row: Mapping[str, Any], how: str = "") -> str:
    """Return in one line what is said wherever figures of a run are: what of it was not read, and `how` to list it.

    "" where nothing is amiss; `row` as in `state_words`, or of one step, without those of the steps. What is handed on
    without its index has no `how`.
    """
    problems = [f"{words}{_steps_amiss(row, 'problems', 'in')}" for words in problem_words(row)]
    said = "; ".join([*problems, *file_words(row)])
    untried = row.get("untried_steps", 0)
    steps = f"{untried:,} of {plural(row['steps'], 'step')} not read yet." if untried else ""
    return " ".join(filter(None, (f"{said}{how and f': {how}'}." if said else "", steps)))


def run_states(connection: sqlite3.Connection, schema: str = "main") -> dict[int, dict[str, Any]]:
    """Return how many steps and files of each run, by its number, are in each state, and its problems.

    `schema` is the name that the index is attached by.
    """
    cursor = connection.execute(STATES.format(schema=schema))
    names = [column[0] for column in cursor.description]
    return {row[0]: dict(zip(names, row, strict=True)) for row in cursor}


def step_states(
    connection: sqlite3.Connection, run_id: int, step: int | None, split: str | None = None, told: str = "0"
) -> dict[str, Any]:
    """Return how many files that may be of a step are in each state, and their problems; of a `split` of it, if given.

    A file whose place tells no step may hold any, and is counted in all of them. Those that pass the condition `told`
    on their row `s` are told of by themselves, and left out.
    """
    cursor = connection.execute(OF_STEP.format(told=told), {"run_id": run_id, "step": step, "split": split})
    return dict(zip((column[0] for column in cursor.description), cursor.fetchone(), strict=True))


def states_of_steps(connection: sqlite3.Connection, run_id: int) -> dict[int, list[dict[str, Any]]]:
    """Return of each step, by the files' places, how many files of each split are in each state, and their problems.

    Files whose places tell no step count for the run, and are in none.
    """
    cursor = connection.execute(OF_STEPS.format(of_step="s.step is not null"), {"run_id": run_id})
    names = [column[0] for column in cursor.description]
    return by_step(dict(zip(names, row, strict=True)) for row in cursor)


def by_step(rows: Iterable[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """Return the rows of `OF_STEPS` by their steps."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["step"], []).append(row)
    return found


def step_amiss(files: Iterable[Mapping[str, Any]], split: str | None) -> dict[str, Any]:
    """Return what is to be told of a step and split: how many of its files are in each state, and their problems.

    `files` are the rows of the step in `OF_STEPS`. One whose place tells no split counts in all of them.
    """
    counted = dict.fromkeys(("files", *COUNTS), 0)
    for row in files:
        if row["split"] in (None, split):
            counted = {name: count + row[name] for name, count in counted.items()}
    return counted


def step_marks(row: Mapping[str, Any], gone: int | None, trajectories: int | None) -> list[str]:
    """Return what stands beside a step of which not all was read, in words; nothing where nothing is amiss.

    `row` is as `step_amiss` has it; `gone` of the step's trajectories cannot be opened any more.
    """
    lost = [f"{gone:,} of {plural(trajectories or 0, 'trajectory')} cannot be opened"] if gone else []
    return [*problem_words(row), *file_words(row), *lost]


def failed_steps(connection: sqlite3.Connection, run_id: int) -> set[tuple[int | None, str | None]]:
    """Return the steps and splits of a run that are not read since none of their files could be."""
    sql = f"select step, split from steps where run_id = :run_id and {FAILED.format(steps='steps')}"
    return set(connection.execute(sql, {"run_id": run_id}))


def left_aside(files: int) -> str:
    """Return that so many files were left aside."""
    return f"{plural(files, 'file')} {'was' if files == 1 else 'were'} left aside"


def waiting_words(files: int) -> str:
    """Return that so many files have a last line which waits until it is complete."""
    return f"{plural(files, 'file')} {FILES['waiting'][files != 1]}"
