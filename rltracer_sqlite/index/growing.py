"""The numbers of steps at each commit within a file: what a batch changes is added to what was counted before.

Counting every step anew at each commit would take the square of a long file's length. Sums of fractions may differ in
their last digit from those of one counting, which comes when the file has been read to its end.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Collection

from .derived import StepKey, StepSums, sums_where, together, write_step_values
from .statistics import write_step

Sums = dict[StepKey, list[StepSums]]


def sums_of(connection: sqlite3.Connection, trajectory_ids: Collection[int]) -> Sums:
    """Return what these trajectories add up to, by step and split, and in each of these by env."""
    if not trajectory_ids:
        return {}
    return sums_where(
        connection, "id in (select value from json_each(:ids))", {"ids": json.dumps(list(trajectory_ids))}
    )


def add_to_steps(connection: sqlite3.Connection, run_id: int, gone: Sums, come: Sums) -> None:
    """Bring the numbers of steps up to date: `gone` is what rows added up to before they were written over."""
    for key in {**gone, **come}:
        parts = [*map(_negative, gone.get(key, [])), *come.get(key, [])]
        of_envs = _stored_values(connection, run_id, key)
        write_step(connection, run_id, key, together([_stored_step(connection, run_id, key, of_envs), *parts]))
        for part in parts:
            of_envs[part.env] = together([*filter(None, [of_envs.get(part.env)]), part])
        write_step_values(connection, run_id, key, of_envs)


def _negative(sums: StepSums) -> StepSums:
    return StepSums(
        sums.env, -sums.trajectories, -sums.scored, -sums.successes,
        None if sums.reward_squares is None else -sums.reward_squares, None, None,
        {name: (-count, None if total is None else -total) for name, (count, total) in sums.values.items()},
    )  # fmt: skip


def _stored_values(connection: sqlite3.Connection, run_id: int, key: StepKey) -> dict[str | None, StepSums]:
    """Return by env what is stored of a step's sums: their values."""
    rows = connection.execute(
        "select env, name, trajectories, total from step_values where run_id = ? and step is ? and split is ?",
        (run_id, *key),
    )
    found: dict[str | None, StepSums] = {}
    for env, name, count, total in rows:
        found.setdefault(env, StepSums(env, 0, 0, 0, None, None, None, {})).values[name] = count, total
    return found


def _stored_step(
    connection: sqlite3.Connection, run_id: int, key: StepKey, of_envs: dict[str | None, StepSums]
) -> StepSums:
    """Return what is stored of a step's sums: its counts, and the squares that its deviation was made of."""
    row = connection.execute(
        """
        select trajectories, scored, successes, reward_mean, reward_std from steps
        where run_id = ? and ifnull(step, -1) = ifnull(?, -1) and ifnull(split, '') = ifnull(?, '')
        """,
        (run_id, *key),
    ).fetchone()
    values = together(list(of_envs.values())).values
    count, scored, successes, mean, deviation = row or (0, 0, 0, None, None)
    if mean is None or deviation is None:
        return StepSums(None, count, scored, successes, None, None, None, values)
    squares = values["reward"][0] * (deviation * deviation + mean * mean)
    # Where there is no deviation all rewards are alike; else it is known that they are not, and of them no more.
    least, most = (-math.inf, math.inf) if deviation else (mean, mean)
    return StepSums(None, count, scored, successes, squares, least, most, values)
