"""What of an index differs whenever a page does: the rows of runs, steps and files, or those of a prompt group."""

from __future__ import annotations

import sqlite3
from typing import Any

from rltracer_sqlite.index.states import NOT_OPENED

from .prompt_elsewhere import NO_WORDS, SAME
from .queries import bounded

MOST_ROWS = 1_000
Marks = tuple[int, list[Any]]  # how many trajectories a page tells of, and what differs with it
Row = dict[str, Any]

RUNS = f"select id, name, {{shown}} from runs where {{where}} order by id limit {MOST_ROWS}"
STEPS = """
select
    ifnull(sum(trajectories), 0) as trajectories, count(*) as rows, count(indexed_at) as read_rows, min(step) as first,
    max(step) as last, max(indexed_at) as indexed_at, total(prompt_groups) as prompt_groups, total(scored) as scored,
    total(successes) as successes, total(reward_mean) as reward_mean, total(reward_std) as reward_std,
    total(tokens_mean) as tokens_mean, total(turns_mean) as turns_mean, total(truncated) as truncated,
    total(errors) as errors
from steps where {where}
"""
# How far the files are read that hold records, and when these were written: other records are of another time.
FILES = """
select total(indexed_bytes) as read_bytes, total(mtime_ns & 4294967295) as times
from shards where {where} and producer is null
"""
# Which files are not in order, and among how many, as pages say it. Each state begins with another letter, so that two
# files which exchange theirs are told as well.
AMISS = """
with amiss as (
    select id, state, problems from shards where (state <> 'complete' or problems > 0 or size = 0) and {where}
)
select
    count(*) as amiss, total(id * problems + iif(state = 'complete', 0, id * unicode(state))) as which,
    iif(exists (select 1 from amiss), (select count(*) from shards where {where}), 0) as files
from amiss
"""
BESIDE_STEP = """
select
    (select max(step) from steps where run_id = :run and step < :step) as previous,
    (select min(step) from steps where run_id = :run and step > :step) as next
"""

GROUP = "select * from prompt_groups where id = :group"
TRAJECTORIES = f"select * from trajectories where prompt_group_id = :group order by id limit {MOST_ROWS}"
# How many groups its step has is told beside a group too, and changes all the time while the step is written; the page
# is out of date when its neighbours are others.
BESIDE_GROUP = """
select
    r.name, r.success_path, r.success_threshold,
    (select max(id) from prompt_groups o where o.run_id = g.run_id and o.step is g.step and o.id < g.id) as previous,
    (select min(id) from prompt_groups o where o.run_id = g.run_id and o.step is g.step and o.id > g.id) as next
from prompt_groups g join runs r on r.id = g.run_id where g.id = :group
"""
PROMPT = (
    "select :prompt as prompt, max(nullif(key, :no_words)) as key, max(task) as task from prompts where id = :prompt"
)
ELSEWHERE = f"""
{SAME.strip()}
select
    g.run_id, r.name, count(*) as prompt_groups, max(g.id) as last, total(g.trajectories) as trajectories,
    total(g.scored) as scored, total(g.successes) as successes, total(g.reward_mean) as reward_mean
from same join prompt_groups g on g.prompt_id = same.id join runs r on r.id = g.run_id
group by g.run_id order by g.run_id limit {MOST_ROWS}
"""
# The page of a prompt shows its groups, its best and its worst trajectory, and says what of the run was not read.
GROUPS_OF_PROMPT = f"""
select * from prompt_groups where prompt_id = :prompt and run_id = :run order by id limit {MOST_ROWS}
"""
OF_PROMPT = """
select
    count(*) as trajectories, total(t.id * t.reward) as rewards, total(t.id * t.success) as successes,
    total(t.id * t.gone) as gone, (select count(*) - count(indexed_at) from steps where run_id = :run) as unread_steps
from prompt_groups g join trajectories t on t.prompt_group_id = g.id where g.prompt_id = :prompt and g.run_id = :run
"""


def overview_marks(connection: sqlite3.Connection) -> Marks:
    """Return what differs whenever the page of all runs does."""
    runs = _rows(connection, RUNS.format(shown="source, indexed_at, success_path, success_threshold", where="1"), {})
    return _together(connection, runs, "1", "1", {})


def run_marks(connection: sqlite3.Connection, run: int) -> Marks:
    """Return what differs whenever the page of a run does."""
    shown = "source, indexed_at, tokenizer, step_kind, success_path, success_threshold"
    runs = _rows(connection, RUNS.format(shown=shown, where="id = :run"), asked := {"run": run})
    return _together(connection, runs, "run_id = :run", "run_id = :run", asked)


def step_marks(connection: sqlite3.Connection, run: int, step: int | None) -> Marks:
    """Return what differs whenever the page of a step does.

    Of files that may hold records of many steps it is only what is not in order with them, which the page says too.
    """
    where = f"run_id = :run and step is {'null' if step is None else int(step)}"
    runs = _rows(
        connection,
        RUNS.format(shown="step_kind, success_path, success_threshold", where="id = :run"),
        asked := {"run": run},
    )
    beside = [] if step is None else _rows(connection, BESIDE_STEP, {**asked, "step": step})
    files = f"({where} or run_id = :run and step is null) and not {NOT_OPENED}"
    return _together(connection, [*runs, *beside], where, files, asked)


def group_marks(connection: sqlite3.Connection, group: int) -> Marks:
    """Return what differs whenever the page of a prompt group does, whichever of its neighbours are chosen."""
    asked: Row = {"group": group}
    own = _rows(connection, GROUP, asked)
    if not own:
        return 0, []
    beside = _rows(connection, BESIDE_GROUP, asked)
    [asked_of_prompt] = _rows(connection, PROMPT, {"prompt": own[0]["prompt_id"], "no_words": NO_WORDS})
    elsewhere = _rows(connection, ELSEWHERE, asked_of_prompt)
    return own[0]["trajectories"], [*own, *_rows(connection, TRAJECTORIES, asked), *beside, *elsewhere]


def prompt_marks(connection: sqlite3.Connection, run: int, prompt: int) -> Marks:
    """Return what differs whenever the page of a prompt over all steps of a run does."""
    asked = {"run": run, "prompt": prompt}
    rule = RUNS.format(shown="success_path, success_threshold", where="id = :run")
    texts = (OF_PROMPT, rule, GROUPS_OF_PROMPT, AMISS.format(where="run_id = :run"))
    [of_prompt], *shown = (_rows(connection, sql, asked) for sql in texts)
    return of_prompt["trajectories"], [of_prompt, *shown]


def _together(connection: sqlite3.Connection, shown: list[Row], own: str, files: str, asked: Row) -> Marks:
    """Return rows with the numbers of the steps and of the `own` files of a page, and what it says of its `files`."""
    [steps], [read], [amiss] = (
        _rows(connection, sql.format(where=where), asked) for sql, where in ((STEPS, own), (FILES, own), (AMISS, files))
    )
    return steps["trajectories"], [shown, steps, read["read_bytes"], read["times"], amiss]


def _rows(connection: sqlite3.Connection, sql: str, asked: Row) -> list[Row]:
    cursor = connection.execute(sql, asked)
    names = [column[0] for column in cursor.description]
    return [bounded(dict(zip(names, row, strict=True))) for row in cursor]
