-- The pass rate of prompts per window of steps: 40 prompts, evenly spaced from the hardest to the easiest.
with {groups},
pooled as (
    select prompt_id, env, place, step_first, sum(scored) as n, sum(successes) as c
    from selected where scored > 0 group by prompt_id, env, place
),
overall as (
    select prompt_id, env, sum(c) * 1.0 / sum(n) as overall_pass_rate from pooled group by prompt_id, env
),
ranked as (
    select *, row_number() over (order by overall_pass_rate, prompt_id, env) as rank, count(*) over () as all_prompts
    from overall
),
chosen as (
    select * from ranked where all_prompts <= 40 or rank * 40 / all_prompts > (rank - 1) * 40 / all_prompts
)
select chosen.rank, all_prompts, chosen.prompt_id, chosen.env, preview, overall_pass_rate, place as window, step_first,
    step_first + cast(:window as integer) - 1 as step_last, n as scored, c as successes, c * 1.0 / n as pass_rate
from chosen
join pooled on pooled.prompt_id = chosen.prompt_id and pooled.env is chosen.env
join prompts on prompts.id = chosen.prompt_id
order by chosen.rank, place
