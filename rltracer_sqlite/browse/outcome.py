"""What the reading of a step has given: whether there is a trajectory of it, and in a sentence why there is none."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from ..amounts import plural
from .steps import ALL_STEPS, NO_STEP, parse_step

MOST_TOLD = 3  # files
LONGEST_REASON = 300

# A file's own problem (it has no line) is why all of it is missing; else the first line that could not be read.
# The steps of the places, each with its number of files of that kind and those of them that say most.
FILES = """
with troubled as (
    select
        id, path, file, step, state, size, problems, count(*) over (partition by step) as files,
        row_number() over (partition by step order by state = 'unread' desc, problems = 0, path) as place
    from shards s where run_id = :run_id and state <> 'gone' and (state = 'unread' or records = 0) and {of_step}
)
select
    s.id, s.file as path, s.step, s.state, s.size, s.files,
    (select p.line from problems p where p.shard_id = s.id order by p.line is not null, p.id limit 1) as line,
    (select p.reason from problems p where p.shard_id = s.id order by p.line is not null, p.id limit 1) as reason
from troubled s where place <= {most} order by s.step, place
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
    cursor = connection.execute(FILES.format(of_step=of_step, most=MOST_TOLD), asked)
    names = [column[0] for column in cursor.description]
    files = [dict(zip(names, row, strict=True)) for row in cursor][:MOST_TOLD]
    what = {ALL_STEPS: "this run", NO_STEP: "these files"}.get(step, f"step {step}")
    left = [aside_in_words(why, count) for why, count in (aside or {}).items()]
    return " ".join([f"No trajectory of {what} was found.", *files_in_words(files), *left])


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
    reason = str(file["reason"])[:LONGEST_REASON].rstrip(".") if file["reason"] else _without_a_reason(file)
    if file["line"] is not None:
        reason = f"line {file['line']:,}: {reason}"
    return f"{reason}." if file["path"] in reason else f"{file['path']}: {reason}."


def _without_a_reason(file: Mapping[str, Any]) -> str:
    if file["state"] == "waiting":
        return "it ends in the middle of its only line"
    if file["state"] == "unread":
        return "it was not read to its end"
    return "it holds no rollout" if file["size"] else "it is empty"
