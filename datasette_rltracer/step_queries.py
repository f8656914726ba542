"""What the page of a step asks the index: its splits, its prompt groups under filters, and its files that are gone."""

from __future__ import annotations

from rltracer_sqlite.browse.outcome import FILES, GAVE_NONE, MOST_TOLD
from rltracer_sqlite.index.queries import REWARDED
from rltracer_sqlite.index.states import COUNTED_STATES, MAY_BE_OF_SPLIT, MAY_BE_OF_STEP

from .queries import Query
from .selection import Selection

GROUPS_ON_A_PAGE = 200
MOST_CHOICES = 100

# One row per split: training and evaluation are never counted together.
HEAD = """
select
    r.name as run, r.step_kind, r.success_path, r.success_threshold, s.split, s.trajectories, s.scored, s.successes,
    s.pass_rate, s.reward_mean, {rewarded} as rewarded, s.truncated, s.errors, s.indexed_at,
    (select max(step) from steps where run_id = r.id and step < {step}) as previous,
    (select min(step) from steps where run_id = r.id and step > {step}) as next
from runs r join steps s on s.run_id = r.id where r.id = :run_id and s.step is {step}
order by s.split = 'train' desc, s.split limit {most}
"""

# What cannot be opened any more: the trajectories of the step, and the files that are gone, also those without any.
GONE = """
select
    count(*) as trajectories,
    (select count(*) from (
        select id from shards where run_id = :run_id and step = {step} and state = 'gone'
        union select s.id from trajectories t join shards s on s.id = t.shard_id and s.state = 'gone'
        where t.run_id = :run_id and t.step is {step} and t.gone = 1
    )) as files
from trajectories where run_id = :run_id and step is {step} and gone = 1
"""

# The files that gave no trajectory apart from the others: of those it is told one by one why.
STATES = f"""
select s.step is :step and {GAVE_NONE} as gave_none, sum(s.step is null) as stepless, {COUNTED_STATES.strip()}
from shards s where {MAY_BE_OF_STEP} group by gave_none
"""

# The trajectories of a group are only counted for the groups of one page.
GROUPS = """
with listed as (
    select *, row_number() over (order by {order}) as place
    from prompt_groups where {where} order by {order} limit {size} offset {start}
),
counted as (
    select
        prompt_group_id, sum(truncated) as truncated, sum(ok = 0 or error_type is not null) as errors,
        sum(gone) as gone, count(reward) as rewarded, avg(completion_tokens) as tokens_mean
    from trajectories where prompt_group_id in (select id from listed) group by prompt_group_id
)
select
    id, prompt_id, (select substr(preview, 1, 400) from prompts p where p.id = prompt_id) as preview,
    (select substr(key, 1, 12) from prompts p where p.id = prompt_id) as key, env, split, group_id, trajectories,
    scored, successes, pass_rate, counted.rewarded, reward_mean, reward_std, reward_min, reward_max, zero_variance,
    truncated, errors, tokens_mean, gone
from listed left join counted on prompt_group_id = id order by place
"""

BUCKETS = """
select pass_bucket, count(*) as prompt_groups, sum(zero_variance) as zero_signal, count(zero_variance) as judged
from prompt_groups where {where} group by pass_bucket
"""

CHOICES = """
select distinct env, split from prompt_groups where run_id = :run_id and step is {step} order by env, split limit {most}
"""


def page_queries(run: int, step: int | None, selection: Selection, start: int, size: int) -> list[Query]:
    """Return the queries for the splits of a step, its groups, their bins, what can be chosen, and its files."""
    literal = "null" if step is None else str(int(step))
    asked = {"run_id": run, "split": dict(selection.chosen).get("split")}
    of_step = f"s.step is {literal} and {MAY_BE_OF_SPLIT}"
    return [
        Query(
            HEAD.format(rewarded=REWARDED.format(row="s", of_env=""), step=literal, most=MOST_CHOICES), {"run_id": run}
        ),
        groups_query(selection, start, size),
        buckets_query(selection),
        Query(CHOICES.format(step=literal, most=MOST_CHOICES), {"run_id": run}),
        Query(FILES.format(of_step=of_step, most=MOST_TOLD, by="step"), asked),
        Query(GONE.format(step=literal), {"run_id": run}),
        Query(STATES, {**asked, "step": step}),
    ]


def groups_query(selection: Selection, start: int = 0, size: int = GROUPS_ON_A_PAGE) -> Query:
    """Return the query for the prompt groups of a selection, from place `start` on."""
    where, parameters = selection.where()
    return Query(GROUPS.format(where=where, order=selection.ordering(), size=size, start=start), parameters)


def buckets_query(selection: Selection) -> Query:
    """Return the query for how many groups of a selection are in each bin of pass rates."""
    where, parameters = selection.where()
    return Query(BUCKETS.format(where=where), parameters)
