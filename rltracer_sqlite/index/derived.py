"""Numbers kept a second time so that pages answer at once: a trajectory's difficulty, and the sums behind curves.

Facets and filters see one table, so each trajectory carries the pass rate of its group. Curves over the steps of a
million trajectories would take a second each; the sums per step, split and env are small and exact.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

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


StepKey: TypeAlias = "tuple[int | None, str | None]"
"""A step and a split of a run."""
Values: TypeAlias = "dict[str, tuple[int, float | None]]"
"""What values add up to: name -> (how many trajectories have one, the sum of theirs)."""


class StepSums(NamedTuple):
    """What the trajectories of one step and split add up to, those of one env or of all."""

    env: str | None
    trajectories: int
    scored: int
    successes: int
    reward_squares: float | None  # the sum of the squared rewards
    reward_min: float | None
    reward_max: float | None
    values: Values

    def mean(self, name: str) -> float | None:
        """Return the mean of a value; None where no trajectory has it."""
        count, total = self.values[name]
        return total / count if count and total is not None else None


def refresh_step_values(connection: sqlite3.Connection, run_id: int, step: int | None, split: str | None) -> StepSums:
    """Recompute the sums of one step and split, for every env in it; return those of all envs together."""
    where = "run_id = :run and step is :step and split is :split"
    of_envs = sums_where(connection, where, {"run": run_id, "step": step, "split": split}).get((step, split), [])
    write_step_values(connection, run_id, (step, split), {sums.env: sums for sums in of_envs})
    return together(of_envs)


def write_step_values(
    connection: sqlite3.Connection, run_id: int, key: StepKey, of_envs: dict[str | None, StepSums]
) -> None:
    """Write the sums of a step and split by env, in the key of those that are there."""
    connection.execute("delete from step_values where run_id = ? and step is ? and split is ?", (run_id, *key))
    connection.executemany(
        "insert into step_values (run_id, step, split, env, name, trajectories, total) values (?, ?, ?, ?, ?, ?, ?)",
        [
            (run_id, *key, env, name, count, total)
            for env, sums in of_envs.items()
            for name, (count, total) in sums.values.items()
            if count
        ],
    )


def sums_where(connection: sqlite3.Connection, where: str, parameters: dict[str, Any]) -> dict[StepKey, list[StepSums]]:
    """Return the sums by env of each step and split, from one reading of the trajectories that a condition chooses."""
    values = {**VALUES, **{name: f'"{name}"' for name in reward_columns(connection)}}
    sums = ", ".join(f"count({value}), sum({value})" for value in values.values())
    rows = connection.execute(
        f"""
        select step, split, env, count(*), count(success), coalesce(sum(success), 0), sum(reward * reward), min(reward),
            max(reward), {sums}
        from trajectories where {where} group by step, split, env
        """,
        parameters,
    )
    found: dict[StepKey, list[StepSums]] = {}
    for step, split, *row in rows:
        of_values = dict(zip(values, zip(row[7::2], row[8::2], strict=True), strict=True))
        found.setdefault((step, split), []).append(StepSums._make([*row[:7], of_values]))
    return found


def together(parts: list[StepSums]) -> StepSums:
    """Return what several of them add up to."""
    names = dict.fromkeys([*VALUES, *(name for sums in parts for name in sums.values)])
    pairs = {name: [sums.values.get(name, (0, None)) for sums in parts] for name in names}
    return StepSums(
        None,
        sum(sums.trajectories for sums in parts),
        sum(sums.scored for sums in parts),
        sum(sums.successes for sums in parts),
        _total(sums.reward_squares for sums in parts),
        min((sums.reward_min for sums in parts if sums.reward_min is not None), default=None),
        max((sums.reward_max for sums in parts if sums.reward_max is not None), default=None),
        {name: (sum(count for count, _ in pair), _total(total for _, total in pair)) for name, pair in pairs.items()},
    )


def _total(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def reward_columns(connection: sqlite3.Connection) -> list[str]:
    """Return the columns of the named rewards that are added up per step: the most frequent ones of an index."""
    rows = connection.execute(
        """
        select column_name from fields where path like 'rewards.%' and kind = 'number' and column_name is not null
        order by trajectories desc, id limit ?
        """,
        (MAX_REWARDS,),
    )
    return [str(row[0]) for row in rows if row[0] not in VALUES]
