"""Questions to an index that the library itself asks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..sources.base import Locator

DEFAULT_SPLIT = "train"


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


def runs(connection: sqlite3.Connection) -> list[Run]:
    """Return the runs of an index."""
    return [Run(*row) for row in connection.execute(f"select {', '.join(Run._fields)} from runs order by id")]


def run_facts(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return what is known of each run: its steps, what it holds, and its pass rate and mean reward over all of it."""
    rows = connection.execute(
        """
        select r.id, r.name, r.source, coalesce(sum(g.trajectories), 0), count(g.id), coalesce(sum(g.scored), 0),
            coalesce(sum(g.successes), 0), sum(g.successes) * 1.0 / nullif(sum(g.scored), 0),
            (select avg(t.reward) from trajectories t where t.run_id = r.id)
        from runs r left join prompt_groups g on g.run_id = r.id group by r.id order by r.id
        """
    )
    names = ("run_id", "run", "source", "trajectories", "prompt_groups", "scored", "successes", "pass_rate")
    found = [dict(zip((*names, "reward_mean"), row, strict=True)) for row in rows]
    return [fact | {"steps": [one for one in steps(connection, fact["run_id"]) if one is not None]} for fact in found]


def trajectory_row(connection: sqlite3.Connection, trajectory_id: int) -> dict[str, Any] | None:
    """Return a row of `trajectories` with its shard's path, state and layout, and its run's name, root and source."""
    if not 0 < trajectory_id < 2**63:
        return None
    cursor = connection.execute(
        """
        select t.*, s.path as shard_path, s.state as shard_state, s.layout as layout, r.name as run,
            r.root as root, r.source as source, r.tokenizer as tokenizer,
            r.mapping as mapping
        from trajectories t join shards s on s.id = t.shard_id join runs r on r.id = t.run_id
        where t.id = ?
        """,
        (trajectory_id,),
    )
    row = cursor.fetchone()
    return dict(zip((column[0] for column in cursor.description), row, strict=True)) if row else None


def locators(connection: sqlite3.Connection, row: dict[str, Any]) -> list[Locator]:
    """Return where a trajectory's record and its annotations are, the record first, then the oldest annotation."""
    uid = row["uid"]
    record = Locator(
        uid, row["shard_path"], row["layout"], row["byte_offset"], row["byte_length"], row["item"], row["line"]
    )
    annotations = connection.execute(
        """
        select s.path, s.layout, a.byte_offset, a.byte_length, a.item, a.line, a.producer
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


def step_facts(connection: sqlite3.Connection, run_id: int) -> list[dict[str, Any]]:
    """Return what is known of each step and split of a run; the counts of one that was not read yet are None.

    `gone` counts the trajectories whose file has vanished.
    """
    rows = connection.execute(
        """
        select step, split, iif(indexed_at is null, null, trajectories) as trajectories,
            iif(indexed_at is null, null, prompt_groups) as prompt_groups, pass_rate, reward_mean,
            iif(
                exists (select 1 from shards s where s.run_id = steps.run_id and s.state = 'gone'),
                (
                    select count(*) from trajectories t
                    where t.run_id = steps.run_id and t.step is steps.step and t.split is steps.split and t.gone = 1
                ),
                0
            ) as gone
        from steps where run_id = ? order by step is null, step, split
        """,
        (run_id,),
    )
    names = [column[0] for column in rows.description]
    return [dict(zip(names, row, strict=True)) for row in rows]


def group_facts(connection: sqlite3.Connection, run_id: int, step: int | None) -> dict[str, dict[str, Any]]:
    """Return number, split, pass rate and mean reward of a step's prompts, by the keys that `list_prompts` gives."""
    rows = connection.execute(
        """
        select p.key, p.task, g.split, p.id, sum(g.successes) * 1.0 / nullif(sum(g.scored), 0),
            sum(g.reward_mean * g.rewarded) / sum(iif(g.reward_mean is null, 0, g.rewarded))
        from (
            select h.*, (select count(t.reward) from trajectories t where t.prompt_group_id = h.id) as rewarded
            from prompt_groups h where h.run_id = ? and h.step is ?
        ) g join prompts p on p.id = g.prompt_id
        group by p.id, g.split
        """,
        (run_id, step),
    )
    return {
        group_key(key, task, split): {"prompt_id": number, "split": split, "pass_rate": rate, "reward_mean": mean}
        for key, task, split, number, rate, mean in rows
    }


def whole_number(asked: str) -> int | None:
    """Return the number of a row that a text may mean; None for a text that is none, or too long for one."""
    return int(asked) if asked.isdecimal() and len(asked) < 19 else None


def groups_of_prompts(connection: sqlite3.Connection, run_id: int, asked: str) -> list[dict[str, Any]]:
    """Return a row per step and split of the prompts of this number or whose keys begin with it, prompt by prompt.

    `best` and `worst` are ids of trajectories, by their rewards; None where none has a reward.
    """
    key = asked.partition(":")[0].partition("@")[0][:64]
    number = whole_number(asked)
    rows = connection.execute(
        """
        with rated as (
            select p.id as prompt, p.key, p.task, p.preview, g.split, g.step, t.success, t.reward,
                iif(t.reward is null, null, first_value(t.id) over (best_first)) as best,
                iif(t.reward is null, null, first_value(t.id) over (worst_first)) as worst
            from prompts p join prompt_groups g on g.prompt_id = p.id join trajectories t on t.prompt_group_id = g.id
            where (p.id = ? or p.key between ? and ?) and g.run_id = ?
            window best_first as (
                partition by p.id, g.step, g.split order by t.reward is null, t.reward desc, t.success desc, t.id
            ), worst_first as (partition by p.id, g.step, g.split order by t.reward is null, t.reward, t.success, t.id)
        )
        select prompt, key, task, split, step, count(*), count(success), sum(success), avg(success), avg(reward),
            max(best), max(worst), preview
        from rated group by prompt, step, split order by prompt, step is null, step, split
        """,
        (number, key, f"{key}\U0010ffff", run_id),
    )
    names = ("prompt_id", "prompt", "step", "split", "trajectories", "scored", "successes", "pass_rate", "reward_mean")
    found = [
        dict(
            zip(
                (*names, "best", "worst", "preview"),
                (number, group_key(key, task, split), step, split, *facts),
                strict=True,
            )
        )
        for number, key, task, split, step, *facts in rows
    ]
    return [row for row in found if row["prompt_id"] == number or row["prompt"].startswith(asked)]


def hardest_prompts(connection: sqlite3.Connection, run_id: int, limit: int) -> list[dict[str, Any]]:
    """Return the scored prompts of a run with the lowest pass rates over all steps, the most often scored first."""
    rows = connection.execute(
        """
        select v.prompt_id, p.key, p.task, v.split, v.env, v.steps, v.trajectories, v.scored, v.successes,
            v.pass_rate, v.preview
        from prompt_pass_rates v join prompts p on p.id = v.prompt_id
        where v.run_id = ? and v.scored > 0 order by v.pass_rate, v.scored desc, v.prompt_id, v.split limit ?
        """,
        (run_id, limit),
    )
    names = ("split", "env", "steps", "trajectories", "scored", "successes", "pass_rate", "preview")
    return [
        {"prompt_id": number, "prompt": group_key(key, task, split), **dict(zip(names, (split, *facts), strict=True))}
        for number, key, task, split, *facts in rows
    ]


def run_of_trajectory(connection: sqlite3.Connection, trajectory_id: int) -> tuple[int, str] | None:
    """Return number and name of the run that a trajectory belongs to."""
    row = trajectory_row(connection, trajectory_id)
    return (row["run_id"], row["run"]) if row else None


def trajectories_named(connection: sqlite3.Connection, asked: str, most: int = 5) -> list[int]:
    """Return the ids of the trajectories that a text means: by this id, else by their recorded one or its beginning."""
    number = whole_number(asked)
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


def problems(connection: sqlite3.Connection, run_id: int) -> Iterator[dict[str, Any]]:
    """Yield what could not be read of a run, in the order of its files."""
    rows = connection.execute(
        """
        select s.path, p.line, p.byte_offset, p.byte_length, p.reason
        from problems p join shards s on s.id = p.shard_id where s.run_id = ? order by s.step, s.path, p.id
        """,
        (run_id,),
    )
    names = [column[0] for column in rows.description]
    yield from (dict(zip(names, row, strict=True)) for row in rows)


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
