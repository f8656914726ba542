-- The mean length of trajectories per window of steps and split: sampled tokens, assistant turns and tool calls.
with {values}
select split, step_first, step_last,
    sum(case name when 'turns' then trajectories end) as trajectories,
    sum(case name when 'completion_tokens' then total end)
        / sum(case name when 'completion_tokens' then trajectories end) as completion_tokens,
    sum(case name when 'turns' then total end) / sum(case name when 'turns' then trajectories end) as turns,
    sum(case name when 'tool_calls' then total end) / sum(case name when 'tool_calls' then trajectories end)
        as tool_calls
from selected where place is not null and name in ('completion_tokens', 'turns', 'tool_calls')
group by split, place order by split, step_first
