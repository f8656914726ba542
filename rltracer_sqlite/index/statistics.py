"""The numbers that stand beside prompt groups, steps and runs, recomputed from their trajectories."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable
from datetime import datetime, timezone

from .columns import resolve_path
from .derived import StepKey, StepSums, copy_pass_rates, refresh_step_values

GROUP_STATISTICS = """
with means as (
    select prompt_group_id, avg(reward) as mean from trajectories
    where prompt_group_id in (select value from json_each(:groups)) group by prompt_group_id
)
select count(*), count(t.success), coalesce(sum(t.success), 0), count(t.reward), m.mean, min(t.reward), max(t.reward),
    avg((t.reward - m.mean) * (t.reward - m.mean)), t.prompt_group_id
from trajectories t join means m on m.prompt_group_id = t.prompt_group_id
group by t.prompt_group_id
"""

CHUNK = 20_000


def refresh_groups(connection: sqlite3.Connection, group_ids: Iterable[int] | None = None) -> None:
    """Recompute these prompt groups, or all of them; a group without trajectories is removed."""
    if group_ids is None:
        group_ids = [row[0] for row in connection.execute("select id from prompt_groups")]
    pending = sorted(group_ids)
    for begin in range(0, len(pending), CHUNK):
        groups = json.dumps(pending[begin : begin + CHUNK])
        rows = connection.execute(GROUP_STATISTICS, {"groups": groups}).fetchall()
        connection.executemany(
            """
            update prompt_groups set trajectories = ?, scored = ?, successes = ?, rewarded = ?, reward_mean = ?,
                reward_min = ?, reward_max = ?, reward_std = ? where id = ?
            """,
            # The spread is exactly 0 where all rewards are equal, whatever rounding says.
            [(*row[:7], 0.0 if row[5] is not None and row[5] == row[6] else _root(row[7]), row[8]) for row in rows],
        )
        connection.execute(
            """
            delete from prompt_groups where id in (select value from json_each(:groups))
                and not exists (select 1 from trajectories t where t.prompt_group_id = prompt_groups.id)
            """,
            {"groups": groups},
        )
        copy_pass_rates(connection, groups)


def refresh_steps(connection: sqlite3.Connection, run_id: int, keys: Iterable[StepKey] | None = None) -> None:
    """Recompute these (step, split) of a run, or those that have no numbers yet (None)."""
    if keys is None:
        query = "select step, split from steps where run_id = ? and indexed_at is null"
        keys = connection.execute(query, (run_id,)).fetchall()
    for key in keys:
        write_step(connection, run_id, key, refresh_step_values(connection, run_id, *key))


def note_read_steps(connection: sqlite3.Connection, run_id: int, key: StepKey | None = None) -> None:
    """Note that a (step, split) of a run whose files were read is read, or all such (None), also without a trajectory.

    One has none where its records all repeat those of others. With a trajectory it is read as soon as that is counted.
    """
    of_step = "1" if key is None else "ifnull(step, -1) = ifnull(:step, -1) and ifnull(split, '') = ifnull(:split, '')"
    step, split = key or (None, None)
    asked = {"run": run_id, "step": step, "split": split, "now": utc_now()}
    unread = f"select id from steps where run_id = :run and indexed_at is null and {of_step}"
    if not connection.execute(f"{unread} limit 1", asked).fetchone():
        return
    files_read = f"""
        select ifnull(step, -1), ifnull(split, '') from shards where run_id = :run and {of_step}
        group by 1, 2 having sum(state in ('reading', 'unread')) = 0
    """
    read = f"{unread} and (ifnull(step, -1), ifnull(split, '')) in ({files_read})"
    # Asked before it is written: of a run that is looked at every other second there is nothing to be written.
    if connection.execute(f"{read} limit 1", asked).fetchone():
        connection.execute(f"update steps set indexed_at = :now where id in ({read})", asked)


def write_step(connection: sqlite3.Connection, run_id: int, key: StepKey, sums: StepSums) -> None:
    """Write the numbers of a step and split; one that never had a trajectory keeps its nulls."""
    if sums.trajectories:
        connection.execute("insert or ignore into steps (run_id, step, split) values (?, ?, ?)", (run_id, *key))
    where = "run_id = ? and ifnull(step, -1) = ifnull(?, -1)"
    connection.execute(
        f"""
        update steps set indexed_at = ?, trajectories = ?, scored = ?, successes = ?, rewarded = ?, reward_mean = ?,
            reward_std = ?, tokens_mean = ?, turns_mean = ?, truncated = ?, errors = ?,
            prompt_groups = (
                select count(*) from prompt_groups g
                where g.run_id = steps.run_id and g.step is steps.step and g.split is steps.split)
        where {where} and ifnull(split, '') = ifnull(?, '') and (trajectories > 0 or ?)
        """,
        (utc_now(), *sums[1:4], sums.values["reward"][0], sums.mean("reward"), _deviation(sums),
         sums.mean("completion_tokens"), sums.mean("turns"), sums.values["truncated"][1],
         sums.values["error"][1], run_id, *key, sums.trajectories),
    )  # fmt: skip
    # A step that was discovered by its folder gets the split of its records when it is read.
    connection.execute(
        f"""
        delete from steps where {where} and split is null and trajectories = 0 and exists (
            select 1 from steps s
            where s.run_id = steps.run_id and ifnull(s.step, -1) = ifnull(steps.step, -1) and s.trajectories > 0)
        """,
        (run_id, key[0]),
    )


def apply_success(connection: sqlite3.Connection, run_id: int) -> None:
    """Recompute `success` of a run's trajectories by the run's rule, then its groups and steps. Reads no file."""
    path, threshold = connection.execute(
        "select success_path, success_threshold from runs where id = ?", (run_id,)
    ).fetchone()
    column = resolve_path(connection, path)
    # A path that is not indexed leaves everything unscored; what it names is told by the caller.
    quoted = '"' + column.replace('"', '""') + '"' if column else "null"
    connection.execute(
        f"""
        update trajectories set success = case when typeof({quoted}) in ('integer', 'real') then {quoted} >= :at end
        where run_id = :run
        """,
        {"at": threshold, "run": run_id},
    )
    groups = connection.execute("select id from prompt_groups where run_id = ?", (run_id,)).fetchall()
    refresh_groups(connection, [row[0] for row in groups])
    read = connection.execute("select step, split from steps where run_id = ? and trajectories > 0", (run_id,))
    refresh_steps(connection, run_id, read.fetchall())


def _deviation(sums: StepSums) -> float | None:
    """Return the population standard deviation of the reward; exactly 0 where all are equal, whatever rounding says."""
    mean, count = sums.mean("reward"), sums.values["reward"][0]
    if mean is None or sums.reward_squares is None:
        return None
    return 0.0 if sums.reward_min == sums.reward_max else _root(sums.reward_squares / count - mean * mean)


def _root(variance: float | None) -> float | None:
    return None if variance is None else math.sqrt(max(0.0, variance))


def utc_now() -> str:
    """Return the time as the index writes it: UTC, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
