"""What the reading of a step has given: whether there is a trajectory of it, and in a sentence why there is none."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from ..amounts import plural, ranges
from ..index.derived import StepKey
from ..index.states import NOT_OPENED
from ..sources.base import OF_THE_FILE_BEFORE
from .steps import ALL_STEPS, NO_STEP, parse_step

MOST_TOLD = 3  # files
LONGEST_REASON = 300

# Whether a file that is there and was to be read gave no trajectory; `s` is its row.
GAVE_NONE = f"""(s.state <> 'gone' and not {NOT_OPENED} and (
        s.state = 'unread' or s.records = 0
        or (s.producer is null and not exists (select 1 from trajectories t where t.shard_id = s.id))))"""
# A file's own problem (it has no line) is why all of it is missing; else the first line that could not be read.
# The steps of the places, each with its number of files of that kind and those of them that say most. Of a file whose
# records repeat those of others: how many do, and of which steps these are (the first of them, as JSON).
FILES = f"""
with troubled as (
    select
        id, path, file, step, split, state, size, problems, count(*) over (partition by {{by}}) as files,
        row_number() over (partition by {{by}} order by state = 'unread' desc, problems = 0, path) as place
    from shards s where run_id = :run_id and {{of_step}} and {GAVE_NONE}
)
select
    s.id, s.file as path, s.step, s.split, s.state, s.size, s.files,
    (select count(*) from annotations a where a.shard_id = s.id and a.producer = 'copy') as copies,
    (select json_group_array(step) from (
        select distinct t.step from annotations a join trajectories t on t.id = a.trajectory_id
        where a.shard_id = s.id and a.producer = 'copy' order by 1 limit 50
    )) as copied_steps,
    (select p.line from problems p where p.shard_id = s.id order by p.line is not null, p.id limit 1) as line,
    (select p.reason from problems p where p.shard_id = s.id order by p.line is not null, p.id limit 1) as reason
from troubled s where place <= {{most}} order by s.step, place
"""
# Whether such a file was read, and all that it holds stands elsewhere; of the rows of FILES.
REPEATS_OTHERS = f"(copies > 0 or reason like '%{OF_THE_FILE_BEFORE.format(are='%')}')"
# The steps and splits that were read and have no trajectory; those of the lists are put in the place of `steps`.
EMPTY = """
(ifnull(s.step, -1), ifnull(s.split, '')) in (
    select ifnull(step, -1), ifnull(split, '') from {steps}
    where run_id = :run_id and indexed_at is not null and trajectories = 0
)
"""


def why_nothing_is_read(
    connection: sqlite3.Connection, run_id: int, step: str, aside: Mapping[str, int] | None = None
) -> str | None:
    """Return why a step that was read has no trajectory, or None where it has some. `step` is as in `step_key`.

    `aside` says why files of it were not read at all, and how many.
    """
    asked: dict[str, Any] = {"run_id": run_id, "step": None if step == ALL_STEPS else parse_step(step)}
    of_step = "1" if step == ALL_STEPS else "s.step is :step"
    # A file's step and the one that its records name can differ; either makes a trajectory one of the step.
    found = connection.execute(
        f"""
        select exists (select 1 from trajectories s where run_id = :run_id and {of_step})
            or exists (
                select 1 from trajectories where shard_id in (
                    select s.id from shards s where s.run_id = :run_id and {of_step}))
        """,
        asked,
    ).fetchone()
    if found[0]:
        return None
    files = _files(connection, FILES.format(of_step=of_step, most=MOST_TOLD, by="step"), asked)[:MOST_TOLD]
    what = {ALL_STEPS: "this run", NO_STEP: "these files"}.get(step, f"step {step}")
    left = [aside_in_words(why, count) for why, count in (aside or {}).items()]
    return " ".join([f"No trajectory of {what} was found.", *files_in_words(files), *left])


def why_empty(connection: sqlite3.Connection, run_id: int) -> dict[StepKey, str]:
    """Return of each (step, split) of a run that was read and has no trajectory what is known of the first file of it.

    "" where all of its files gave some, of other steps or splits.
    """
    query = "select step, split from steps where run_id = ? and indexed_at is not null and trajectories = 0"
    found = dict.fromkeys(connection.execute(f"{query} order by step is null, step, split", (run_id,)), "")
    if found:
        files = _files(connection, empty_query(), {"run_id": run_id})
        found.update({(file["step"], file["split"]): trouble(file) for file in files})
    return found


def empty_query(steps: str = "steps") -> str:
    """Return the query for the first file of each step and split that has no trajectory, of those in `steps`."""
    return FILES.format(of_step=EMPTY.format(steps=steps), most=1, by="step, split")


def _files(connection: sqlite3.Connection, query: str, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    cursor = connection.execute(query, asked)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def aside_in_words(why: str, count: int) -> str:
    """Return that so many files were left aside, and why."""
    return f"{plural(count, 'file')} {'is' if count == 1 else 'are'} left aside: {why.rstrip('.')}."


def files_in_words(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is known of the files of a step that gave no trajectory, a sentence each; `files` are as in FILES."""
    told = [file_trouble(file) for file in files]
    more = files[0]["files"] - len(files) if files else 0
    return [*told, f"{plural(more, 'more file')} gave none either."] if more > 0 else told


def file_trouble(file: Mapping[str, Any]) -> str:
    """Return what is known of a file that gave no trajectory, in one sentence that names it; `file` is as in FILES."""
    reason = trouble(file)
    return f"{reason}." if file["path"] in reason else f"{file['path']}: {reason}."


def trouble(file: Mapping[str, Any]) -> str:
    """Return what is known of a file that gave no trajectory, without its name; `file` is as in FILES."""
    if file["copies"]:
        return _repetition(file["copies"], json.loads(file["copied_steps"]))
    reason = str(file["reason"])[:LONGEST_REASON].rstrip(".") if file["reason"] else _without_a_reason(file)
    return reason if file["line"] is None else f"line {file['line']:,}: {reason}"


def _repetition(records: int, steps: Sequence[int | None]) -> str:
    numbers = ranges(step for step in steps if step is not None)
    others = f"of step{'' if numbers.isdecimal() else 's'} {numbers}" if numbers else "of another file"
    if records == 1:
        return f"1 record repeats one {others}, where it is counted"
    return f"{records:,} records repeat those {others}, where they are counted"


def _without_a_reason(file: Mapping[str, Any]) -> str:
    if file["state"] == "waiting":
        return "it ends in the middle of its only line"
    if file["state"] in ("reading", "unread"):
        return "it was not read to its end"
    return "it holds no rollout" if file["size"] else "it is empty"
