-- The share of prompt groups per window of steps and split whose rewards are all equal, so that they give no GRPO
-- signal: because all failed, because all passed, or with some other equal reward.
with {groups}
select split, step_first, step_last, count(*) as prompt_groups,
    avg(zero_variance) as zero_variance,
    avg(zero_variance = 1 and scored > 0 and successes = 0) as all_failed,
    avg(zero_variance = 1 and scored > 0 and successes = scored) as all_passed,
    avg(zero_variance = 1 and (scored = 0 or (successes > 0 and successes < scored))) as other_equal
from selected where zero_variance is not null and place is not null
group by split, place order by split, step_first
