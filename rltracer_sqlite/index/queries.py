"""Questions to an index that the library itself asks."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..amounts import exactly
from ..scores import Scores
from ..sources.base import Locator
from .views import DERIVED_ADVANTAGE

DEFAULT_SPLIT = "train"
# How many trajectories of a row of steps, or of step_summary in an environment, have a reward.
REWARDED = """(
    select ifnull(sum(v.trajectories), 0) from step_values v
    where v.run_id = {row}.run_id and v.step is {row}.step and v.split is {row}.split and v.name = 'reward' {of_env}
)"""
DECODED_BY_NONE = ("messages", "token_ids")  # the content_kind of what no tokenizer has made into text


class Run(NamedTuple):
    """A row of `runs`."""

    id: int
    name: str
    root: str
    source: str
    tokenizer: str | None
    mapping: str | None
    success_path: str
    success_threshold: float

    @property
    def success(self) -> str:
        """The success rule as it is written."""
        return f"{self.success_path} >= {exactly(self.success_threshold)}"


def runs(connection: sqlite3.Connection) -> list[Run]:
    """Return the runs of an index."""
    return [Run(*row) for row in connection.execute(f"select {', '.join(Run._fields)} from runs order by id")]


def trajectory_row(connection: sqlite3.Connection, trajectory_id: int) -> dict[str, Any] | None:
    """Return a row of `trajectories` with what its shard is, and its run's name, root, source and success rule.

    `advantage_derived` is the reward minus the mean of the prompt group, where no advantage is recorded.
    """
    if not 0 < trajectory_id < 2**63:
        return None
    cursor = connection.execute(
        f"""
        select t.*, case when t.advantage is null then {DERIVED_ADVANTAGE} end as advantage_derived,
            s.path as shard_path, s.file as shard_file, s.state as shard_state, s.layout as layout,
            r.name as run, r.root as root, r.source as source, r.tokenizer as tokenizer, r.mapping as mapping,
            r.success_path as success_path, r.success_threshold as success_threshold
        from trajectories t join shards s on s.id = t.shard_id join runs r on r.id = t.run_id
        where t.id = ?
        """,
        (trajectory_id,),
    )
    row = cursor.fetchone()
    return dict(zip((column[0] for column in cursor.description), row, strict=True)) if row else None


def as_recorded(connection: sqlite3.Connection, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose columns of rewards have the names that records have, after reward_: reward_Format.

    A name of a column keeps neither capitals nor signs, and has a number where two are alike: reward_format_2.
    """
    fields = connection.execute(
        "select column_name, path from fields where path like 'rewards.%' and column_name like 'reward\\_%' escape '\\'"
    )
    names = {column: f"reward_{path.removeprefix('rewards.').removesuffix('.score')}" for column, path in fields}
    return {names.get(column, column): value for column, value in row.items()}


def locators(connection: sqlite3.Connection, row: dict[str, Any]) -> list[Locator]:
    """Return where a trajectory's record and its annotations are, the record first, then the oldest annotation."""
    uid = row["uid"]
    record = Locator(
        uid, row["shard_path"], row["layout"], row["byte_offset"], row["byte_length"], row["item"], row["line"],
        file=row["shard_file"],
    )  # fmt: skip
    annotations = connection.execute(
        """
        select s.path, s.layout, a.byte_offset, a.byte_length, a.item, a.line, a.producer, s.file
        from annotations a join shards s on s.id = a.shard_id
        where a.trajectory_id = ? and s.state <> 'gone' and a.producer not in ('record', 'copy')
        order by s.step, s.path, a.byte_offset
        """,
        (row["id"],),
    )
    return [record, *(Locator(uid, *place) for place in annotations)]


def steps(connection: sqlite3.Connection, run_id: int) -> list[int | None]:
    """Return the steps of a run, discovered or read; None, for trajectories without a step, comes last."""
    rows = connection.execute("select distinct step from steps where run_id = ?", (run_id,)).fetchall()
    found = sorted(row[0] for row in rows if row[0] is not None)
    return [*found, None] if any(row[0] is None for row in rows) else found


def row_number(asked: str) -> int | None:
    """Return the number of a row that a text may mean; None for a text that is none, or too long for one."""
    return int(asked) if asked.isdecimal() and len(asked) < 19 else None


def run_of_trajectory(connection: sqlite3.Connection, trajectory_id: int) -> tuple[int, str] | None:
    """Return number and name of the run that a trajectory belongs to."""
    row = trajectory_row(connection, trajectory_id)
    return (row["run_id"], row["run"]) if row else None


def prompt_of_trajectory(connection: sqlite3.Connection, trajectory_id: int) -> int | None:
    """Return the number of a trajectory's prompt, or None where it has none."""
    found = connection.execute(
        """
        select g.prompt_id from trajectories t join prompt_groups g on g.id = t.prompt_group_id where t.id = ?
        """,
        (trajectory_id,),
    ).fetchone()
    return found[0] if found else None


def key_of_prompt(connection: sqlite3.Connection, prompt: int | None) -> str | None:
    """Return the key of a prompt by its number: that of its words, which prompts of several tasks can share."""
    found = connection.execute("select key from prompts where id = ?", (prompt,)).fetchone()
    return found[0] if found else None


def trajectories_named(connection: sqlite3.Connection, asked: str, most: int = 5) -> list[int]:
    """Return the ids of the trajectories that a text means: by this id, else by their recorded one or its beginning."""
    number = row_number(asked)
    if number is not None and trajectory_row(connection, number):
        return [number]
    if not asked:
        return []
    rows = connection.execute(
        """
        select t.id, t.uid = :asked from runs r join trajectories t on t.run_id = r.id
        where t.uid between :asked and :asked || char(1114111) order by t.uid = :asked desc, t.id limit :most
        """,
        {"asked": asked, "most": most},
    ).fetchall()
    return [identity for identity, is_whole in rows if is_whole] or [identity for identity, _ in rows]


def is_trajectory(connection: sqlite3.Connection, run_id: int, asked: int | str) -> bool:
    """Say whether there is a trajectory of this id, or of this recorded one in a run."""
    found = connection.execute(
        """
        select exists (
            select 1 from trajectories where id = :number
            union all select 1 from trajectories where run_id = :run and uid = :uid
        )
        """,
        {"number": row_number(str(asked)), "run": run_id, "uid": str(asked)},
    )
    return bool(found.fetchone()[0])


def no_trajectory(connection: sqlite3.Connection, asked: object) -> str:
    """Return the sentence for a trajectory that an index has not, with the ids of those that it has."""
    count, first, last = connection.execute("select count(*), min(id), max(id) from trajectories").fetchone()
    has = f"it has {count:,}, from {first} to {last}" if count else "it has none"
    return f"The index has no trajectory {asked}; {has}."


def misfit(connection: sqlite3.Connection, row: Mapping[str, Any]) -> str | None:
    """Return the sentence that the tokenizer of a trajectory's run does not fit, where its text comes from that one.

    It is told once for a run, as a problem of the first file that shows it.
    """
    if row["content_kind"] in DECODED_BY_NONE:
        return None
    found = connection.execute(
        """
        select p.reason from problems p join shards s on s.id = p.shard_id
        where s.run_id = ? and p.reason like 'The tokenizer %fit these files: %' order by p.id limit 1
        """,
        (row["run_id"],),
    ).fetchone()
    return str(found[0]) if found else None


def list_prompts(connection: sqlite3.Connection, run_id: int, step: int | None) -> list[tuple[str, int, str]]:
    """Return (key, number of trajectories, preview) of the prompts of a step, in the order of their first trajectory.

    The key is the prompt's key, with ":task" where the record names a task, and "@split" for a split that is not train.
    """
    rows = connection.execute(
        """
        select p.key, p.task, g.split, sum(g.trajectories), p.preview
        from prompt_groups g join prompts p on p.id = g.prompt_id
        where g.run_id = ? and g.step is ? group by p.id, g.split order by min(g.id)
        """,
        (run_id, step),
    )
    return [(group_key(key, task, split), count, preview) for key, task, split, count, preview in rows]


def step_scores(connection: sqlite3.Connection, run_id: int, step: int | None) -> Scores | None:
    """Return what is known of a step's trajectories of one split: train where the step has any of it.

    Else it is the first split by name, as everywhere; None where nothing of the step has been read.
    """
    row = connection.execute(
        f"""
        select scored, successes, reward_mean, split, null, {REWARDED.format(row="steps", of_env="")} from steps
        where run_id = ? and step is ? and indexed_at is not null
        order by split is not ?, ifnull(split, '') limit 1
        """,
        (run_id, step, DEFAULT_SPLIT),
    ).fetchone()
    return None if row is None else Scores(*row)


def group_key(key: str, task: str, split: str | None) -> str:
    """Return one text for a prompt within a step: what `list_prompts` gives and `list_trajectory_ids` takes."""
    where = "" if split in (None, DEFAULT_SPLIT) else f"@{split}"
    return f"{key}:{task}{where}" if task else f"{key}{where}"


def list_trajectory_ids(connection: sqlite3.Connection, run_id: int, step: int | None, key: str) -> list[int]:
    """Return the trajectories of a prompt within a step, in the order in which they were written."""
    prompt_ids = _prompts_of(connection, run_id, step, key)
    rows = connection.execute(
        f"""
        select t.id from trajectories t join prompt_groups g on g.id = t.prompt_group_id
        where g.run_id = ? and g.step is ? and (g.prompt_id, ifnull(g.split, '')) in
            (values {", ".join("(?, ?)" for _ in prompt_ids) or "(null, null)"})
        order by t.shard_id, t.byte_offset, t.item
        """,
        (run_id, step, *(value for pair in prompt_ids for value in pair)),
    )
    return [row[0] for row in rows]


def _prompts_of(connection: sqlite3.Connection, run_id: int, step: int | None, key: str) -> Sequence[tuple[int, str]]:
    rows = connection.execute(
        """
        select distinct p.id, ifnull(g.split, ''), p.task, g.split from prompts p
        join prompt_groups g on g.prompt_id = p.id
        where p.key = ? and g.run_id = ? and g.step is ?
        """,
        (key[:64], run_id, step),
    )
    return [(identity, split) for identity, split, task, raw in rows if group_key(key[:64], task, raw) == key]
