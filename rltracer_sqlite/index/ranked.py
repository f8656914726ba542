"""The prompts of a run in the order of their pass rates over all steps: the hardest and the easiest."""

from __future__ import annotations

import sqlite3
from typing import Any

from .lists import ALL, Among, table_rows, with_key
from .over_steps import Query

# Those that are listed are chosen first: their trajectories alone are asked for rewards. Of prompts with the same pass
# rate the one with more scored trajectories says more. The sign before prompt_id keeps the planner from an order of the
# groups by an index, in which reading them costs half as much again.
RANKED = """
with ranked as (
    select prompt_id, split, env, count(distinct step) as steps, sum(trajectories) as trajectories,
        sum(scored) as scored, sum(successes) as successes,
        sum(successes) * 1.0 / nullif(sum(scored), 0) as pass_rate,
        count(*) over () as prompts, sum(sum(scored) > 0) over () as listed,
        sum(sum(scored) > 0 and sum(successes) = 0) over () as never_passed,
        sum(sum(scored) > 0 and sum(successes) = sum(scored)) over () as always_passed,
        row_number() over (
            order by sum(scored) = 0, sum(successes) * 1.0 / sum(scored), sum(scored) desc, prompt_id, split, env
        ) as place
    from prompt_groups g where g.run_id = :run and {among} group by +prompt_id, split, env
),
chosen as (
    select * from ranked where scored > 0 and {places}
    order by pass_rate {direction}, scored desc, prompt_id, split, env limit {limit}
),
rewards as (
    select c.place, count(t.reward) as rewarded, avg(t.reward) as reward_mean
    from chosen c
    cross join prompt_groups g
        on g.prompt_id = c.prompt_id and g.split is c.split and g.env is c.env and g.run_id = :run
    cross join trajectories t on t.prompt_group_id = g.id group by c.place
)
select c.prompt_id, p.key, p.task, c.split, c.env, c.steps, c.trajectories, c.scored, c.successes, c.pass_rate,
    r.rewarded, r.reward_mean, substr(p.preview, 1, 400) as preview, c.listed, c.prompts,
    c.never_passed, c.always_passed
from chosen c join prompts p on p.id = c.prompt_id left join rewards r on r.place = c.place
order by c.pass_rate {direction}, c.scored desc, c.prompt_id, c.split, c.env
"""
COUNTED = ("listed", "prompts", "never_passed", "always_passed")
# Beside the list of the hardest none of them is called easy.
NOT_AMONG_THE_HARDEST = "place > {limit}"


def ranked_query(run_id: int, limit: int, among: Among = ALL, is_easiest: bool = False, places: str = "1 = 1") -> Query:
    """Return the query for the rows of `ranked_prompts`, of those that meet the condition `places` alone.

    Each row has COUNTED: of all prompts how many are scored (`listed`), never passed and always did, and how many there
    are.
    """
    text = RANKED.format(
        among=among.condition("g"),
        places=places.format(limit=int(limit)),
        direction="desc" if is_easiest else "asc",
        limit=int(limit),
    )
    return text, {**among.given, "run": run_id}


def ranked_prompts(
    connection: sqlite3.Connection, run_id: int, limit: int, among: Among = ALL, is_easiest: bool = False
) -> tuple[list[dict[str, Any]], int, int]:
    """Return the scored prompts of a run with the lowest or highest pass rates over all steps, how many are scored, and
    how many prompts there are; without a scored one the three are [], 0 and 0.

    A prompt of two splits is ranked in each. Of equal pass rates the most often scored comes first.
    """
    rows = list(map(with_key, table_rows(connection, *ranked_query(run_id, limit, among, is_easiest))))
    counts = [{name: row.pop(name) for name in COUNTED} for row in rows]
    return rows, *((counts[0]["listed"], counts[0]["prompts"]) if counts else (0, 0))
