"""What the trajectories of a run amount to, and the split that stands for the run: one rule for pages and terminal."""

from __future__ import annotations

from collections.abc import Iterable

from .queries import DEFAULT_SPLIT

# A step's mean reward counts by how many of its trajectories are scored: those that an error ended have no reward
# either. `table` is steps, or step_summary where an environment is asked for.
WEIGHTED = """
weighted as (
    select
        *, ifnull(split, '') as named,
        case when reward_mean is null then null when scored > 0 then scored else trajectories end as weight
    from {table} where trajectories > 0
)"""
TOTALS = """
totals as (
    select
        run_id, named, sum(successes) as successes, sum(scored) as scored, sum(trajectories) as trajectories,
        sum(prompt_groups) as prompt_groups, sum(reward_mean * weight) / sum(weight) as reward
    from weighted group by run_id, named
)"""


def main_split(splits: Iterable[str]) -> str | None:
    """Return the split whose pass rate is that of the run: train, else the first by name; None where there is none."""
    return min(splits, key=lambda split: (split != DEFAULT_SPLIT, split), default=None)
