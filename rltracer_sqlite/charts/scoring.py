"""What the pass rates of a chart rest on: the success rule, and how many trajectories it leaves unscored."""

from __future__ import annotations

from typing import Any

from ..amounts import LONGEST_NAME, shortened
from ..passrates import unscored_words
from .data import SELECTION, Query

# Charts that are drawn from successes, and whether they draw trajectories without a step as well.
DRAWN = {"pass_rate": False, "histogram": True, "difficulty": True, "zero_variance": False}
SCORING = f"""
select success_path as path, success_threshold as threshold, trajectories, scored
from runs cross join (
    select cast(total(trajectories) as integer) as trajectories, cast(total(scored) as integer) as scored
    from prompt_groups where {SELECTION.strip()} and (step is not null or :without_step)
)
where id = :run_id
"""


def scoring_query(chart: str, query: Query) -> tuple[str, dict[str, Any]] | None:
    """Return the query for the row of `scoring_words`; None for a chart that no success rule has a part in."""
    return (SCORING, {**query.parameters, "without_step": DRAWN[chart]}) if chart in DRAWN else None


def scoring_words(path: object, threshold: object, trajectories: int, scored: int, split: str) -> str:
    """Return the success rule behind a chart, and how many of the trajectories that it is of are unscored.

    `split` is the one that all of them are of, or "".
    """
    # An index that nobody vouched for may hold anything.
    least = f"{threshold:g}" if isinstance(threshold, (int, float)) else str(threshold)
    return f"Success: {path} >= {least}; {unscored_words(trajectories, scored, shortened(split, LONGEST_NAME))}."
