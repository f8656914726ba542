"""The prompts of a run in the order of their pass rates over all steps: the hardest and the easiest."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..unrecorded import NOT_RECORDED
from .among import ALL, Among
from .lists import table_rows, with_key
from .over_steps import Query, ends_of, groups_of_prompts

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
        on g.prompt_id = c.prompt_id and g.split is c.split and g.env is c.env and g.run_id = :run and {among}
    cross join trajectories t on t.prompt_group_id = g.id group by c.place
)
select c.prompt_id, p.key, p.task, c.split, c.env, c.steps, c.trajectories, c.scored, c.successes, c.pass_rate,
    r.rewarded, r.reward_mean, substr(p.preview, 1, 400) as preview, c.listed, c.prompts,
    c.never_passed, c.always_passed
from chosen c join prompts p on p.id = c.prompt_id left join rewards r on r.place = c.place
order by c.pass_rate {direction}, c.scored desc, c.prompt_id, c.split, c.env
"""
UNSCORED = """
select count(*) as prompts, ifnull(sum(has_reward), 0) as rewarded from (
    select max(reward_mean is not null) as has_reward from prompt_groups g
    where g.run_id = :run and {among} group by +prompt_id, split, env having sum(scored) = 0
)
"""
COUNTED = ("listed", "prompts", "never_passed", "always_passed")
ANY = "1 = 1"
# Where nobody said how many: what always passed is not hard, and what never passed is not easy.
HARD, EASY = "successes < scored", "successes > 0"
# Beside the list of the hardest none of them is called easy.
NOT_AMONG_THE_HARDEST = f"{EASY} and (place > {{limit}} or not {HARD})"


class Ends(NamedTuple):
    """How many prompts are ranked, how many there are, and how many of the ranked never passed and always did."""

    listed: int = 0
    prompts: int = 0
    never_passed: int = 0
    always_passed: int = 0


class Unscored(NamedTuple):
    """How many prompts have no score by the rule of their run, and how many of these have a reward all the same."""

    prompts: int
    rewarded: int


def ranked_query(run_id: int, limit: int, among: Among = ALL, is_easiest: bool = False, places: str = ANY) -> Query:
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
    return text, among.asked(run=run_id)


def ranked_prompts(
    connection: sqlite3.Connection,
    run_id: int,
    limit: int,
    among: Among = ALL,
    is_easiest: bool = False,
    places: str = ANY,
) -> tuple[list[dict[str, Any]], Ends]:
    """Return the scored prompts of a run with the lowest or highest pass rates over all steps, of those that meet the
    condition `places`, and how many there are of all; without a scored one these are [] and zeros.

    A prompt of two splits is ranked in each. Of equal pass rates the most often scored comes first.
    """
    rows = list(map(with_key, table_rows(connection, *ranked_query(run_id, limit, among, is_easiest, places))))
    if not rows and places != ANY:  # how many there are stands in a row
        return [], ranked_prompts(connection, run_id, 1, among, is_easiest)[1]
    ends = [Ends(*(row.pop(name) for name in COUNTED)) for row in rows]
    return rows, ends[0] if ends else Ends()


def unscored_prompts(connection: sqlite3.Connection, run_id: int, among: Among = ALL) -> Unscored:
    """Return how many prompts, counted in each split and environment as they are ranked, have no score, and why."""
    return Unscored(*connection.execute(*unscored_query(run_id, among)).fetchone())


def unscored_query(run_id: int, among: Among = ALL) -> Query:
    """Return the query for the row of `unscored_prompts`."""
    return UNSCORED.format(among=among.condition("g")), among.asked(run=run_id)


def with_ends(
    connection: sqlite3.Connection, run_id: int, prompts: Sequence[dict[str, Any]], among: Among = ALL
) -> list[dict[str, Any]]:
    """Return the rows of `ranked_prompts` with the ids of the trajectories that `groups_of_prompts` has of a step.

    They are `best` and `worst` of all steps, None where all rewards are equal or fewer than two have one, and `highest`
    and `lowest`, which are two of the equal ones then, and None where there is no reward.
    """
    places: dict[tuple[str | None, str | None], list[int]] = {}
    for prompt in prompts:
        places.setdefault((prompt["split"], prompt["env"]), []).append(prompt["prompt_id"])
    groups: dict[tuple[int, str | None, str | None], list[dict[str, Any]]] = {}
    for (split, env), numbers in places.items():
        asked_split, asked_env = (NOT_RECORDED if name is None else name for name in (split, env))
        kept = replace(among, split=asked_split, env=asked_env)
        for group in groups_of_prompts(connection, run_id, numbers, kept):
            groups.setdefault((group["prompt_id"], split, env), []).append(group)
    return [{**one, **_ends(groups.get((one["prompt_id"], one["split"], one["env"]), []))} for one in prompts]


def _ends(groups: Sequence[dict[str, Any]]) -> dict[str, int | None]:
    ends = ends_of(groups)
    highest, lowest = (None, None) if ends is None else (end.trajectory for end in ends)
    best, worst = (highest, lowest) if ends and ends[0].reward > ends[1].reward else (None, None)
    return {"best": best, "worst": worst, "highest": highest, "lowest": lowest}
