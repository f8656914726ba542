"""What the trajectories of a run amount to, and the split that stands for the run: one rule for pages and terminal."""

from __future__ import annotations

from collections.abc import Iterable

from .queries import DEFAULT_SPLIT

# A mean over steps is that of all their rewards: some trajectories have a score and no reward, or the other way round,
# so that neither count can weigh the means of steps. `of_env` is empty, or a condition on the environment, and `table`
# is steps, or step_summary of that environment.
COUNTED = """
rewards as (
    select run_id, step, split, sum(total) as reward_total, sum(trajectories) as rewarded
    from step_values where name = 'reward'{of_env} group by run_id, step, split
),
counted as (
    select
        s.run_id, s.step, s.split, s.trajectories, s.scored, s.successes, s.pass_rate, s.prompt_groups,
        ifnull(s.split, '') as named, v.reward_total, v.rewarded
    from {table} s left join rewards v on v.run_id = s.run_id and v.step is s.step and v.split is s.split
    where s.trajectories > 0
)"""
TOTALS = """
totals as (
    select
        run_id, named, sum(successes) as successes, sum(scored) as scored, sum(trajectories) as trajectories,
        ifnull(sum(trajectories) filter (where step is null), 0) as without_step,
        sum(prompt_groups) as prompt_groups, ifnull(sum(rewarded), 0) as rewarded,
        sum(reward_total) / sum(rewarded) as reward
    from counted group by run_id, named
)"""


def main_split(splits: Iterable[str]) -> str | None:
    """Return the split whose pass rate is that of the run: train, else the first by name; None where there is none."""
    return min(splits, key=lambda split: (split != DEFAULT_SPLIT, split), default=None)
