"""Numbers kept a second time so that pages answer at once: a trajectory's difficulty, and the sums behind curves.

Facets and filters see one table, so each trajectory carries the pass rate of its group. Curves over the steps of a
million trajectories would take a second each; the sums per step, split and env are small and exact.
"""

from __future__ import annotations

import sqlite3

MAX_REWARDS = 40  # components of the reward with a curve
VALUES = {
    "reward": "reward",
    "completion_tokens": "completion_tokens",
    "turns": "turns",
    "tool_calls": "tool_calls",
    "truncated": "truncated",
    "error": "(ok = 0 or error_type is not null)",
}


def copy_pass_rates(connection: sqlite3.Connection, groups: str) -> None:
    """Give the trajectories of these groups (a JSON array of ids) their group's pass rate, where it has changed."""
    connection.execute(
        """
        update trajectories set group_pass_rate = g.pass_rate from prompt_groups g
        where g.id in (select value from json_each(:groups)) and trajectories.prompt_group_id = g.id
            and trajectories.group_pass_rate is not g.pass_rate
        """,
        {"groups": groups},
    )


def refresh_step_values(connection: sqlite3.Connection, run_id: int, step: int | None, split: str | None) -> None:
    """Recompute the sums of one step and split, for every env in it."""
    place = {"run": run_id, "step": step, "split": split}
    connection.execute("delete from step_values where run_id = :run and step is :step and split is :split", place)
    values = {**VALUES, **{name: f'"{name}"' for name in _reward_columns(connection)}}
    sums = ", ".join(f"count({value}) as n{i}, sum({value}) as s{i}" for i, value in enumerate(values.values()))
    rows = " union all ".join(f"select env, :name{i}, n{i}, s{i} from sums where n{i}" for i in range(len(values)))
    connection.execute(
        f"""
        with sums as (
            select env, {sums} from trajectories
            where run_id = :run and step is :step and split is :split group by env
        ),
        found(env, name, trajectories, total) as ({rows})
        insert into step_values (run_id, step, split, env, name, trajectories, total)
        select :run, :step, :split, env, name, trajectories, total from found
        """,
        {**place, **{f"name{i}": name for i, name in enumerate(values)}},
    )


def _reward_columns(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        """
        select column_name from fields where path like 'rewards.%' and kind = 'number' and column_name is not null
        order by trajectories desc, id limit ?
        """,
        (MAX_REWARDS,),
    )
    return [str(row[0]) for row in rows if row[0] not in VALUES]
