-- The pass rate per window of steps and split with its 95 % interval. Prompts are the sample: the interval is Wilson's
-- with the effective sample size of a ratio of prompt totals, as in rltracer_sqlite.passrates.estimate_rate.
with {groups},
pooled as (
    select split, place, step_first, step_last, sum(scored) as n, sum(successes) as c
    from selected where scored > 0 and place is not null group by place, prompt_id, split, env
),
totals as (
    select split, step_first, step_last, count(*) as prompts, sum(n) as scored, sum(c) as successes,
        sum(c) * 1.0 / sum(n) as rate,
        sum(c * c) * sum(n) * sum(n) - 2 * sum(c) * sum(n) * sum(c * n) + sum(c) * sum(c) * sum(n * n) as squares
    from pooled group by split, place
),
sized as (
    select *, 3.841458820694124 / case
        when successes in (0, scored) then prompts
        when prompts = 1 then 1
        when squares <= 0 then scored
        else min(max(
            rate * (1 - rate) * scored * scored * scored * scored * (prompts - 1.0) / prompts / squares, 1), scored
        ) end as spread
    from totals
)
select split, step_first, step_last, prompts, scored, successes,
    rate as pass_rate,
    max(0.0, (rate + spread / 2 - sqrt(rate * (1 - rate) * spread + spread * spread / 4)) / (1 + spread)) as low,
    min(1.0, (rate + spread / 2 + sqrt(rate * (1 - rate) * spread + spread * spread / 4)) / (1 + spread)) as high
from sized order by split, step_first
