"""The views of an index: pass rates, training curves and what is left to read, for people with SQL and for the pages.

Every computed column is cast, because a filter of Datasette compares text with it, and only a typed column is
compared as a number.
"""

from __future__ import annotations

from .schema import PASS_BUCKET

# The advantage is derived only where none is recorded: the distance from the group's mean, as GRPO has it before any
# division by the spread. Rounded, since the mean of equal rewards can miss them by a rounding error, and with a zero
# added, since what is rounded to nothing from below is -0.0.
DERIVED_ADVANTAGE = (
    "round(reward - (select reward_mean from prompt_groups g where g.id = prompt_group_id and g.trajectories > 1), 12)"
    " + 0.0"
)

WINDOW_SIZES = (1, 2, 5, 10, 20, 40, 100, 200, 400, 1000)  # steps
# One for each size, since SQLite takes a condition on the size through one `group by` and not through two: a question
# about one size would count all of them.
WINDOW_SUMMARY = """
select
    run_id as run_id,
    split as split,
    env as env,
    cast({size} as integer) as window_size,
    window as window,
    cast(min(step_first) as integer) as step_first,
    cast(min(step_last) as integer) as step_last,
    cast(count(*) as integer) as prompts,
    cast(sum(trajectories) as integer) as trajectories,
    cast(sum(scored) as integer) as scored,
    cast(sum(successes) as integer) as successes,
    cast(sum(successes) * 1.0 / nullif(sum(scored), 0) as real) as pass_rate,
    cast(avg(pass_rate) as real) as prompt_pass_rate,
    cast(sum(scored = 0) as integer) as prompts_unscored,
    cast(sum(scored > 0 and successes = 0) as integer) as prompts_all_failed,
    cast(sum(scored > 0 and successes = scored) as integer) as prompts_all_passed
from prompt_windows
where window_size = {size}
group by run_id, window, split, env
"""

# What the columns mean that a view computes; the others have the meaning of the table's column of the same name.
VIEW_COLUMNS = {
    "prompt_pass_rates": {
        "steps": "in how many steps the prompt was sampled",
        "pass_rate": "successes / scored, over all steps; null: unscored, which sorts before 0",
        "rewarded": "trajectories that have a reward: how many the mean is over",
        "reward_mean": "mean of the total reward, over all steps",
    },
    "step_summary": {
        "run": "the run's name",
        "rewarded": "trajectories that have a reward: how many the mean is over",
        "zero_variance_share": "share of the groups of two or more trajectories whose rewards are all equal",
    },
    "tool_use": {
        "tool": "the name of the tool, as it was called",
        "trajectories": "how many trajectories called it at least once",
        "scored": "those that passed or failed",
        "successes": "those that passed",
        "pass_rate": "successes / scored; null: unscored",
    },
    "advantages": {
        "trajectory_id": "the trajectory",
        "advantage": "the recorded advantage, else the reward minus the mean of the prompt group; null: neither",
        "is_derived": "1: the advantage is derived, 0: it is recorded; null: there is none",
    },
    "unread_steps": {"run": "the run's name"},
    "run_problems": {
        "run": "the run's name",
        "step": "the step by the file's place, null where the records say it",
        "file": "the file as it was last read, relative to the run's folder",
        "line": "the line, counted from 1",
        "byte_offset": "where it starts, in the uncompressed bytes",
        "byte_length": "how many bytes it has",
        "reason": "what is wrong with it",
        "problem_id": "the number of its row in problems",
    },
    "prompt_windows": {
        "window_size": "how many steps a window has",
        "window": "the window's number, counted from 0 at the run's first step; null: of what has no step",
        "step_first": "the first step of the window; null: of what has no step",
        "step_last": "the last step of the window; null: of what has no step",
        "prompt_groups": "how many prompt groups the prompt has in the window",
    },
    "window_summary": {
        "window_size": "how many steps a window has",
        "window": "the window's number, counted from 0 at the run's first step; null: of what has no step",
        "step_first": "the first step of the window; null: of what has no step",
        "step_last": "the last step of the window; null: of what has no step",
        "prompts": "how many prompts were sampled in the window",
        "prompt_pass_rate": "mean of the prompts' pass rates: each prompt counts the same",
        "prompts_unscored": "prompts without a scored trajectory",
        "prompts_all_failed": "prompts whose scored trajectories all failed",
        "prompts_all_passed": "prompts whose scored trajectories all passed",
    },
    "prompt_changes": {
        "window_size": "how many steps a window has",
        "window_before": "the window before, of those in which the prompt was scored",
        "window": "the window in which the prompt has changed",
        "pass_rate_before": "the pass rate in the window before",
        "pass_rate": "the pass rate in the window in which the prompt has changed",
        "change": "gained (failed, then solved) or lost (solved, then failed)",
    },
    "pass_at_k": {
        "k": "how many trajectories are drawn",
        "pass_at_k": "the chance that k of the scored trajectories hold a success",
    },
}

VIEWS = """
-- The pass rate of every prompt over a whole run, per split: the hardest are those near 0. Ask for
-- scored > 0 when sorting by it: the pass rate of an unscored prompt is null, which comes first.
create view prompt_pass_rates as
select
    g.run_id as run_id,
    g.split as split,
    g.env as env,
    g.prompt_id as prompt_id,
    p.preview as preview,
    cast(count(distinct g.step) as integer) as steps,
    cast(sum(g.trajectories) as integer) as trajectories,
    cast(sum(g.scored) as integer) as scored,
    cast(sum(g.successes) as integer) as successes,
    cast(sum(g.successes) * 1.0 / nullif(sum(g.scored), 0) as real) as pass_rate,
    cast(sum(g.rewarded) as integer) as rewarded,
    cast(sum(g.reward_mean * g.rewarded) / nullif(sum(g.rewarded), 0) as real) as reward_mean
from prompt_groups g join prompts p on p.id = g.prompt_id
group by g.run_id, g.split, g.env, g.prompt_id;

-- A line per run, step, split and env: what a training curve is drawn from. What has no step is a line of its own,
-- whose step is null.
create view step_summary as
select
    g.run_id as run_id,
    r.name as run,
    g.step as step,
    g.split as split,
    g.env as env,
    cast(count(*) as integer) as prompt_groups,
    cast(sum(g.trajectories) as integer) as trajectories,
    cast(sum(g.scored) as integer) as scored,
    cast(sum(g.successes) as integer) as successes,
    cast(sum(g.successes) * 1.0 / nullif(sum(g.scored), 0) as real) as pass_rate,
    cast(sum(g.rewarded) as integer) as rewarded,
    (select v.mean from step_values v where v.run_id = g.run_id and v.step is g.step and v.split is g.split
        and v.env is g.env and v.name = 'reward') as reward_mean,
    cast(avg(g.zero_variance) as real) as zero_variance_share
from prompt_groups g join runs r on r.id = g.run_id
group by g.run_id, g.step, g.split, g.env;

-- A line per run, step, split, env and tool: how many trajectories called it, and how they fared. One that called
-- several tools counts once for each of them.
create view tool_use as
select
    lists.run_id as run_id,
    lists.step as step,
    lists.split as split,
    lists.env as env,
    cast(called.value as text) as tool,
    cast(sum(lists.trajectories) as integer) as trajectories,
    cast(sum(lists.scored) as integer) as scored,
    cast(sum(lists.successes) as integer) as successes,
    cast(sum(lists.successes) * 1.0 / nullif(sum(lists.scored), 0) as real) as pass_rate
from (
    -- Those with the same list are counted first: an index has them beside each other, and taking lists apart is slow.
    select
        run_id, step, split, env, tools, count(*) as trajectories, count(success) as scored,
        ifnull(sum(success), 0) as successes
    from trajectories where tools is not null group by run_id, step, split, env, tools
) lists join json_each(lists.tools) called
group by lists.run_id, lists.step, lists.split, lists.env, called.value;

-- Steps that were discovered and not read yet.
create view unread_steps as
select r.name as run, s.run_id as run_id, s.step as step, s.split as split
from steps s join runs r on r.id = s.run_id
where s.indexed_at is null;

-- What could not be read of each run, or in part only, and why: the table problems with its runs and files, without
-- what is told of files that are left aside for a known reason.
create view run_problems as
select
    s.run_id as run_id,
    r.name as run,
    s.step as step,
    s.file as file,
    p.line as line,
    p.byte_offset as byte_offset,
    p.byte_length as byte_length,
    p.reason as reason,
    p.id as problem_id
from problems p join shards s on s.id = p.shard_id join runs r on r.id = s.run_id
where s.problems > 0;

-- The pass rate of every prompt in windows of steps, counted from the run's first step. Choose one window_size:
-- 1, 2, 5, 10, 20, 40, 100, 200, 400 or 1000. Windows without a scored trajectory have a null pass rate. What has no
-- step is a window of its own, whose number is null.
create view prompt_windows as
with sizes(size) as (values {sizes}),
origins as materialized (select run_id, min(step) as origin from prompt_groups group by run_id),
counted as (
    select
        g.run_id, origin, g.split, g.env, g.prompt_id, size, (g.step - origin) / size as place, count(*) as parts,
        sum(g.trajectories) as trajectories, sum(g.scored) as scored, sum(g.successes) as successes
    from sizes cross join origins cross join prompt_groups g on g.run_id = origins.run_id
    group by size, g.run_id, place, g.split, g.env, g.prompt_id
)
select
    run_id as run_id,
    split as split,
    env as env,
    cast(size as integer) as window_size,
    cast(place as integer) as window,
    cast(origin + place * size as integer) as step_first,
    cast(origin + place * size + size - 1 as integer) as step_last,
    prompt_id as prompt_id,
    (select preview from prompts p where p.id = prompt_id) as preview,
    cast(parts as integer) as prompt_groups,
    cast(trajectories as integer) as trajectories,
    cast(scored as integer) as scored,
    cast(successes as integer) as successes,
    cast(successes * 1.0 / nullif(scored, 0) as real) as pass_rate,
    {pass_bucket} as pass_bucket
from counted;

-- A line per run, window of steps, split and env: prompts by how they fared. Choose one window_size.
create view window_summary as
{one_summary_for_each_size};

-- Prompts that moved between two windows in which they were scored: solved means that at least half passed.
-- Choose one window_size; change is gained (failed, then solved) or lost (solved, then failed). What has no step is in
-- no window here.
create view prompt_changes as
with sizes(size) as (values {sizes}),
origins as materialized (select run_id, min(step) as origin from prompt_groups group by run_id)
select
    run_id as run_id,
    split as split,
    env as env,
    cast(size as integer) as window_size,
    prompt_id as prompt_id,
    (select preview from prompts p where p.id = prompt_id) as preview,
    cast(place_before as integer) as window_before,
    cast(place as integer) as window,
    cast(rate_before as real) as pass_rate_before,
    cast(rate as real) as pass_rate,
    case when rate >= 0.5 then 'gained' else 'lost' end as change
from (
    -- Not from prompt_windows: what is grouped and then looked at in the same order is sorted once. Sizes come first in
    -- both views, so that the one that is asked for is found once and not for every group.
    select
        g.run_id, size, g.split, g.env, g.prompt_id, (g.step - origin) / size as place,
        sum(g.successes) * 1.0 / sum(g.scored) as rate,
        lag((g.step - origin) / size) over moments as place_before,
        lag(sum(g.successes) * 1.0 / sum(g.scored)) over moments as rate_before
    from sizes cross join origins cross join prompt_groups g on g.run_id = origins.run_id
    where g.step is not null
    group by g.run_id, size, g.split, g.env, g.prompt_id, (g.step - origin) / size
    having sum(g.scored) > 0
    window moments as (
        partition by g.run_id, size, g.split, g.env, g.prompt_id order by (g.step - origin) / size
    )
)
where (rate >= 0.5) <> (rate_before >= 0.5);

-- The advantage of every trajectory as pages and `rltracer inspect` show it: trajectories.advantage has recorded ones
-- only, and where none is, it is derived here from the rewards of the prompt group, where it is not alone there.
create view advantages as
select
    id as trajectory_id,
    run_id as run_id,
    step as step,
    split as split,
    env as env,
    prompt_group_id as prompt_group_id,
    success as success,
    reward as reward,
    cast(ifnull(advantage, {derived}) as real) as advantage,
    cast(iif(advantage is null, iif({derived} is null, null, 1), 0) as integer) as is_derived
from trajectories;

-- pass@k for every pair of scored and successes that a prompt group has, and every k from 1 to scored (at most 128):
-- 1 - C(n-c, k) / C(n, k), Chen et al. 2021 (arXiv 2107.03374). Join it to prompt_groups on scored and successes.
-- A group with fewer than k scored has no row for k: means of two k compare only over groups that have both.
create view pass_at_k as
with recursive pairs(scored, successes) as (select distinct scored, successes from prompt_groups where scored > 0),
draws(scored, successes, k, missed) as (
    select scored, successes, 1, (scored - successes) * 1.0 / scored from pairs
    union all
    select scored, successes, k + 1, missed * max(scored - successes - k, 0) / (scored - k)
    from draws
    where k < min(scored, 128)
)
select
    scored as scored,
    successes as successes,
    cast(k as integer) as k,
    cast(1 - missed as real) as pass_at_k
from draws;
""".format(
    pass_bucket=PASS_BUCKET,
    sizes=", ".join(f"({size})" for size in WINDOW_SIZES),
    derived=DERIVED_ADVANTAGE,
    one_summary_for_each_size="\nunion all\n".join(WINDOW_SUMMARY.format(size=size).strip() for size in WINDOW_SIZES),
)
