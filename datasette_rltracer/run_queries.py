"""What the page of a run asks the index: the run itself, and each of its lists."""

from __future__ import annotations

from rltracer_sqlite.browse.outcome import empty_query
from rltracer_sqlite.index.problems import FILES, KINDS
from rltracer_sqlite.index.queries import REWARDED
from rltracer_sqlite.index.ranked import HARD, NOT_AMONG_THE_HARDEST, ranked_query
from rltracer_sqlite.index.states import COUNTED_STATES, COUNTED_STEPS, COUNTS, FAILED, OF_STEPS, STEPS_AMISS
from rltracer_sqlite.index.without_text import WITHOUT_TEXT
from rltracer_sqlite.scores import MOST_RANKED

from .queries import Query

STEPS_ON_A_PAGE = 100
MOST_ENVS = 50
MOST_ERRORS = 20
MOST_PROBLEMS = 20
MOST_COMPARED = 50_000  # problems, of which those that are alike are put together: as many as take a tenth of a second
MOST_FILES = 100  # that an address names

RUN = f"""
select
    r.*,
    {COUNTED_STEPS.format(schema="main").strip()},
    (select count(distinct step) from steps where run_id = r.id) as numbered_steps,
    (select count(*) from steps where run_id = r.id) as step_rows,
    files, {", ".join(COUNTS)},
    {STEPS_AMISS.format(schema="main").strip()},
    {WITHOUT_TEXT.format(schema="main").strip()},
    (select json_group_array(json_array(id, step, split)) from (
        select id, step, split from shards where run_id = r.id and problems > 0
        limit {MOST_FILES + 1}
    )) as files_with_problems
from runs r join (select {COUNTED_STATES.strip()} from shards s where run_id = :run_id)
where r.id = :run_id
"""

STEPS_IN_ORDER = "order by s.step is null, s.step desc, s.split = 'train' desc, s.split limit {size} offset {start}"
# A step without a number comes last. Whether a step gives a signal is counted from its groups.
STEPS = f"""
with signals as (
    select step, split, sum(zero_variance) as zero_signal, count(zero_variance) as judged
    from prompt_groups where run_id = :run_id group by step, split
)
select
    s.step, s.split, s.trajectories, s.prompt_groups, s.scored, s.successes, s.pass_rate, s.reward_mean, s.reward_std,
    {REWARDED.format(row="s", of_env="")} as rewarded,
    g.zero_signal, g.judged, {FAILED.format(steps="s").strip()} as failed,
    s.tokens_mean, s.turns_mean, s.truncated, s.errors, s.indexed_at,
    case when exists (select 1 from shards where run_id = :run_id and state in ('gone', 'unread')) then (
        select count(*) from trajectories t
        where t.run_id = :run_id and t.step is s.step and t.split is s.split and t.gone = 1
    ) end as gone
from steps s left join signals g on g.step is s.step and g.split is s.split
where s.run_id = :run_id
{STEPS_IN_ORDER}
"""
LISTED = f"(select * from steps s where run_id = :run_id {STEPS_IN_ORDER})"
EMPTY = empty_query(LISTED)
FILES_OF_STEPS = OF_STEPS.format(of_step=f"s.step in (select step from {LISTED})")

# An older index does not tell how many of a group's trajectories have a reward: the sums behind the curves do.
ENVS = """
with listed as (
    select
        env, split, count(*) as prompt_groups, count(distinct prompt_id) as prompts, sum(trajectories) as trajectories,
        sum(scored) as scored, sum(successes) as successes,
        sum(zero_variance) as zero_signal, count(zero_variance) as judged, count(*) over () as listed
    from prompt_groups where run_id = :run_id group by env, split order by trajectories desc, env, split limit {most}
),
rewards as (
    select env, split, sum(trajectories) as rewarded, sum(total) / sum(trajectories) as reward_mean
    from step_values where run_id = :run_id and name = 'reward' group by env, split
)
select
    l.*, ifnull(v.rewarded, 0) as rewarded, v.reward_mean,
    exists (select 1 from step_values where run_id = :run_id and name = 'tool_calls' and total > 0) as has_tools
from listed l left join rewards v on v.env is l.env and v.split is l.split
order by l.trajectories desc, l.env, l.split
"""

# Evaluations learn nothing from their groups, so each split is counted apart.
SIGNALS = """
select split, sum(zero_variance) as zero_signal, count(zero_variance) as judged
from prompt_groups where run_id = :run_id group by split
"""

# Few trajectories have an error. The sign before run_id keeps the planner to their index; as a sign takes the type of
# the column away as well, the number has to be cast.
ERRORS = """
select
    error_type, count(*) as trajectories, min(step) as first_step, max(step) as last_step,
    json_group_array(distinct step) as error_steps, count(*) over () as listed
from trajectories where +run_id = cast(:run_id as integer) and error_type > ''
group by error_type order by count(*) desc, error_type limit {most}
"""

# What is alike is one row, lest thousands of equal problems hide another.
PROBLEMS = KINDS.format(most=MOST_COMPARED) + "order by problems desc, id limit {most}"
FILES_AMISS = f"select *, count(*) over () as listed from ({FILES}) limit {{most}}"


def list_queries(run: int, start: int = 0) -> dict[str, Query]:
    """Return the queries of the page's lists by their names."""
    texts = {
        "steps": STEPS.format(size=STEPS_ON_A_PAGE, start=start),
        "empty": EMPTY.format(size=STEPS_ON_A_PAGE, start=start),
        "files_of_steps": FILES_OF_STEPS.format(size=STEPS_ON_A_PAGE, start=start),
        "envs": ENVS.format(most=MOST_ENVS),
        "signals": SIGNALS,
        "errors": ERRORS.format(most=MOST_ERRORS),
        "problems": PROBLEMS.format(most=MOST_PROBLEMS),
        "files": FILES_AMISS.format(most=MOST_PROBLEMS),
    }
    return {**{name: Query(text, {"run_id": run}) for name, text in texts.items()}, **_prompts(run)}


def _prompts(run: int) -> dict[str, Query]:
    """Return the queries for the hardest and the easiest prompts over all steps.

    They are as many as in the terminal without a number, and in its order: what always passed is not hard, and what
    never passed is not easy. No prompt is in both lists: the easiest are of what the list of the hardest leaves.
    """
    return {
        "hardest": Query(*ranked_query(run, MOST_RANKED, places=HARD)),
        "easiest": Query(*ranked_query(run, MOST_RANKED, is_easiest=True, places=NOT_AMONG_THE_HARDEST)),
    }
