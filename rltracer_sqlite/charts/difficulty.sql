-- The pass rate of prompts per window of steps: 40 scored ones, evenly spaced from the hardest to the easiest. Of equal
-- pass rates the most often scored comes first, as in the lists of the hardest.
with {groups},
overall as (
    select prompt_id, env, sum(scored) as all_scored, sum(successes) * 1.0 / sum(scored) as overall_pass_rate
    from selected where scored > 0 group by prompt_id, env
),
ranked as (
    select *, row_number() over (order by overall_pass_rate, all_scored desc, prompt_id, env) as rank,
        count(*) over () as all_prompts
    from overall
),
chosen as materialized (
    select * from ranked where all_prompts <= 40 or rank * 40 / all_prompts > (rank - 1) * 40 / all_prompts
)
select rank, all_prompts, chosen.prompt_id as prompt_id, chosen.env as env,
    (select preview from prompts where id = chosen.prompt_id) as preview, overall_pass_rate,
    place as window, step_first, step_last,
    sum(scored) as scored, sum(successes) as successes, sum(successes) * 1.0 / sum(scored) as pass_rate
from chosen join selected on selected.prompt_id = chosen.prompt_id and selected.env is chosen.env
where scored > 0
group by rank, place order by rank, place
