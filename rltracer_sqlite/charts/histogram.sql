-- How many prompts of each window of steps have which pass rate; 0 and 1 are bins of their own.
with {groups},
pooled as (
    select place, step_first, step_last, sum(scored) as n, sum(successes) as c
    from selected where scored > 0 group by place, prompt_id, env
),
binned as (
    select place, step_first, step_last, n, c, case
        when c = 0 then 0 when c = n then 5 when c * 4 < n then 1 when c * 2 < n then 2 when c * 4 < n * 3 then 3 else 4
        end as bin
    from pooled
)
select place as window, step_first, step_last, bin,
    case bin when 0 then '0' when 1 then '0–0.25' when 2 then '0.25–0.5' when 3 then '0.5–0.75' when 4 then '0.75–1'
        else '1' end as pass_bucket,
    count(*) as prompts, sum(count(*)) over (partition by place) as window_prompts,
    count(*) * 1.0 / sum(count(*)) over (partition by place) as share
from binned group by place, bin order by place, bin
