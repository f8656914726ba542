-- The share of trajectories per window of steps and split that were cut off by a limit, or ended with an
-- error, of those that record it: an episode that failed before any agent ran says nothing of a limit.
with {values}
select split, step_first, step_last,
    sum(case name when 'truncated' then trajectories end) as truncated_known,
    cast(sum(case name when 'truncated' then total end) as integer) as truncated_count,
    sum(case name when 'truncated' then total end) / sum(case name when 'truncated' then trajectories end) as truncated,
    sum(case name when 'error' then trajectories end) as error_known,
    cast(sum(case name when 'error' then total end) as integer) as error_count,
    sum(case name when 'error' then total end) / sum(case name when 'error' then trajectories end) as error
from selected where place is not null and name in ('truncated', 'error')
group by split, place order by split, step_first
