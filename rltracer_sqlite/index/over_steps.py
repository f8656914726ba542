"""A prompt over all steps of a run, step by step, with its best and its worst trajectory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..amounts import plural
from .among import ALL, Among
from .lists import table_rows, with_key

# The highest and the lowest are the first and the last of a group's page, its best and its worst where its rewards
# differ; all trajectories of a prompt are read once.
OVER_STEPS = """
with rated as materialized (
    select g.prompt_id, g.id as group_id, g.step, g.split, g.env, t.id, t.success, t.reward
    from prompt_groups g join trajectories t on t.prompt_group_id = g.id
    where g.prompt_id in (select value from json_each(:prompts)) and g.run_id = :run and {among}
),
counted as (
    select prompt_id, step, split, count(*) as trajectories, count(success) as scored,
        ifnull(sum(success), 0) as successes, avg(success) as pass_rate, count(reward) as rewarded,
        avg(reward) as reward_mean, max(reward) as reward_max, min(reward) as reward_min,
        iif(count(distinct ifnull(env, '')) = 1, max(env), null) as env,
        min(group_id) as first_group, max(group_id) as last_group
    from rated group by prompt_id, step, split
),
ends as (
    select c.prompt_id, c.step, c.split,
        min(iif(r.reward = c.reward_max, r.id, null)) as highest, sum(r.reward = c.reward_max) as highest_count,
        max(iif(r.reward = c.reward_min, r.id, null)) as lowest, sum(r.reward = c.reward_min) as lowest_count
    from counted c join rated r on r.prompt_id = c.prompt_id and r.step is c.step and r.split is c.split
    group by c.prompt_id, c.step, c.split
)
select c.prompt_id, p.key, p.task, c.step, c.split, c.env, c.trajectories, c.scored, c.successes, c.pass_rate,
    c.rewarded, c.reward_mean, c.reward_max, c.reward_min,
    iif(c.reward_max > c.reward_min, e.highest, null) as best,
    iif(c.reward_max > c.reward_min, e.lowest, null) as worst,
    e.highest, e.lowest, e.highest_count, e.lowest_count, c.first_group, c.last_group,
    substr(p.preview, 1, 400) as preview
from counted c
join ends e on e.prompt_id = c.prompt_id and e.step is c.step and e.split is c.split
join prompts p on p.id = c.prompt_id
order by c.prompt_id, c.step is null, c.step, c.split
"""

Query = tuple[str, dict[str, Any]]  # a question to an index, and its parameters


class End(NamedTuple):
    """The best or the worst trajectory of a prompt over the steps, by its reward."""

    trajectory: int
    reward: float
    step: int | None
    split: str | None
    same: int  # how many trajectories have this reward, itself among them

    @property
    def others(self) -> str:
        """How many others have the same reward, as it stands behind it: " (as 11 others)"; "" where none has."""
        return f" (as {plural(self.same - 1, 'other')})" if self.same > 1 else ""


def over_steps_query(run_id: int, numbers: Sequence[int], among: Among = ALL) -> Query:
    """Return the query for the rows of `groups_of_prompts`."""
    return OVER_STEPS.format(among=among.condition("g")), among.asked(run=run_id, prompts=json.dumps(list(numbers)))


def groups_of_prompts(
    connection: sqlite3.Connection, run_id: int, numbers: Sequence[int], among: Among = ALL
) -> list[dict[str, Any]]:
    """Return a row per step and split of the prompts of these numbers, prompt by prompt.

    `best` and `worst` are ids of trajectories, the first and the last of a group's page by their rewards; None where
    none has a reward, or all are equal. `highest` and `lowest` are the same two also where all are equal, and
    `highest_count` and `lowest_count` are how many have their rewards. `first_group` and `last_group` are ids of prompt
    groups, equal where a row is of one. `env` is None where a row is of several.
    """
    return list(map(with_key, table_rows(connection, *over_steps_query(run_id, numbers, among))))


def ends_of(groups: Sequence[Mapping[str, Any]]) -> tuple[End, End] | None:
    """Return the best and the worst trajectory of all rows of a prompt, or None where none has a reward.

    Of equal rewards the first of the best is meant, and the last of the worst of the first step that has it.
    """
    rewarded = [group for group in groups if group["rewarded"]]
    if not rewarded:
        return None
    best = max(rewarded, key=lambda group: float(group["reward_max"]))
    worst = min(rewarded, key=lambda group: float(group["reward_min"]))
    return _end(rewarded, best, "highest", "reward_max"), _end(rewarded, worst, "lowest", "reward_min")


def why_neither(group: Mapping[str, Any], is_short: bool = False) -> str:
    """Return why a row of a prompt has neither a best nor a worst, in words; "" where it has both, or no reward."""
    if not group["rewarded"] or group["best"] is not None:
        return ""
    if group["rewarded"] == 1:
        return "only one" if is_short else "only one reward"
    return "all equal" if is_short else "all rewards equal"


def ends_of_group(connection: sqlite3.Connection, ids: Sequence[int]) -> tuple[int, int] | None:
    """Return which of these trajectories of a prompt group are the best and the worst, the first and the last of its
    page by their rewards; None where all are equal, or fewer than two have one.
    """
    rows = connection.execute(
        """
        select id, reward from trajectories
        where id in (select value from json_each(?)) and reward is not null order by reward desc, id
        """,
        (json.dumps(list(ids)),),
    ).fetchall()
    return (rows[0][0], rows[-1][0]) if rows and rows[0][1] > rows[-1][1] else None


def _end(groups: Sequence[Mapping[str, Any]], group: Mapping[str, Any], which: str, reward: str) -> End:
    count = sum(other[f"{which}_count"] for other in groups if other[reward] == group[reward])
    return End(group[which], group[reward], group["step"], group["split"], count)
