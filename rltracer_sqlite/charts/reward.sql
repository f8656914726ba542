-- The mean of the total reward and of its components per window of steps and split; the eight most recorded ones.
-- A component is called as its records have it, of which the column's name keeps neither capitals nor signs.
with {values}
select name,
    case when name = 'reward' then 'total' else ifnull(
        (
            select substr(path, 9, length(path) - 8 - 6 * (path like '%.score')) from fields
            where column_name = selected.name and path like 'rewards.%' limit 1
        ),
        substr(name, 8)
    ) end as component,
    split, step_first, step_last,
    sum(trajectories) as trajectories, sum(total) / sum(trajectories) as mean
from selected
where place is not null and name in (
    select name from step_values where run_id = :run_id and (name = 'reward' or name like 'reward\_%' escape '\')
    group by name order by name = 'reward' desc, sum(trajectories) desc, min(id) limit 8
)
group by name, split, place order by name, split, step_first
