"""What the pass rates of a chart rest on: the success rule, and what it leaves unscored."""

from __future__ import annotations

from typing import Any

from ..amounts import LONGEST_NAME, plural, shortened
from ..passrates import unscored_words
from ..reward_parts import RewardParts, as_written, rule_in_words
from ..unrecorded import named
from .data import OF_PROMPTS, SELECTION, Query

# Charts that are drawn from successes.
DRAWN = ("pass_rate", "zero_variance", *OF_PROMPTS)
SCORING = f"""
select success_path as path, success_threshold as threshold, trajectories, scored, prompts, scored_prompts
from runs cross join (
    select cast(total(trajectories) as integer) as trajectories, cast(total(scored) as integer) as scored,
        {{prompts}} as prompts, {{scored_prompts}} as scored_prompts
    from (
        select total(trajectories) as trajectories, total(scored) as scored
        from prompt_groups where {SELECTION.strip()} and (step is not null or :without_step) {{by_prompt}}
    )
)
where id = :run_id
"""
COUNTED = {"prompts": "count(*)", "scored_prompts": "count(nullif(scored, 0))", "by_prompt": "group by prompt_id, env"}


def scoring_query(chart: str, query: Query) -> tuple[str, dict[str, Any]] | None:
    """Return the query for the row of `scoring_words`; None for a chart that no success rule has a part in."""
    if chart not in DRAWN:
        return None
    counted = COUNTED if chart in OF_PROMPTS else {"prompts": "0", "scored_prompts": "0", "by_prompt": ""}
    return SCORING.format(**counted), {**query.parameters, "without_step": chart in OF_PROMPTS}


def scoring_words(
    path: object,
    threshold: object,
    trajectories: int,
    scored: int,
    prompts: int,
    scored_prompts: int,
    split: str,
    parts: RewardParts | None = None,
) -> str:
    """Return the success rule behind a chart, and how many of the trajectories and prompts that it is of are unscored.

    `split` is the one that all of them are of, or ""; `parts` are the rewards that the rule is on where it is on
    several.
    """
    rule = rule_in_words(as_written(path, threshold), parts)
    said = f"Success: {rule}; {unscored_words(trajectories, scored, shortened(named('split', split), LONGEST_NAME))}"
    if unscored := prompts - scored_prompts:
        said += f"; {unscored:,} of {plural(prompts, 'prompt')} {'has' if unscored == 1 else 'have'} no score"
    return f"{said}."
