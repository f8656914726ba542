"""What is available: the groups of the asked steps with their pass rates, and how many trajectories pass each stage."""

from __future__ import annotations

from typing import Any

from .conditions import Condition
from .preferences import ExportMode, ExportPreferences
from .runs import OpenRun
from .scratch import Scratch

SCOPE = """
run_id = :id
    and (:step_start is null or step >= :step_start) and (:step_end is null or step <= :step_end)
    and (:split is null or split is :split or (:split = 'train' and split is null))
"""
# A range of steps, told by its first one, has no window for what has no step.
WINDOW = "case when step is null then null when :size is null then 0 else (step - :origin) / :size end"
FROM_CANDIDATES = """
from members m
cross join groups g on g.run = m.run and g.number = m.grp
cross join source.trajectories t on t.prompt_group_id = m.prompt_group_id
where m.run = :number
"""


def find_groups(scratch: Scratch, run: OpenRun, preferences: ExportPreferences) -> None:
    """Fill `groups`, `members` and `chosen` for one run."""
    connection = scratch.attach(run)
    unit = "window, prompt_id" if preferences.mode is ExportMode.RL else "window, split, env, prompt_id"
    connection.execute(
        f"""
        insert into members (run, unit, prompt_group_id, grp)
        select :number, dense_rank() over (order by {unit}), id,
            dense_rank() over (order by window, split, env, prompt_id)
        from (select id, split, env, prompt_id, {WINDOW} as window from source.prompt_groups where {SCOPE})
        """,
        parameters(run, preferences),
    )
    low, high = preferences.difficulty.bounds
    connection.execute(
        f"""
        insert into groups (run, number, window, prompt_id, trajectories, scored, successes, fits)
        select :number, grp, window, prompt_id, trajectories, scored, successes,
            case when :low is null and :high is null then 1 when scored = 0 then 0
                else (:low is null or successes * 1.0 / scored >= :low)
                    and (:high is null or successes * 1.0 / scored <= :high) end
        from (
            select m.grp, {WINDOW} as window, p.prompt_id, sum(p.trajectories) as trajectories,
                sum(p.scored) as scored, sum(p.successes) as successes
            from members m join source.prompt_groups p on p.id = m.prompt_group_id
            where m.run = :number group by m.grp
        )
        """,
        {**parameters(run, preferences), "low": low, "high": high},
    )
    if run.spec.only is not None:
        chosen = ((run.number, id) for id in run.spec.only.ids)
        scratch.insert("insert or ignore into chosen (run, id) values (?, ?)", chosen)


def parameters(run: OpenRun, preferences: ExportPreferences) -> dict[str, Any]:
    """Return what the statements about one run are given."""
    spec = run.spec
    return {
        "number": run.number, "id": run.id, "split": spec.split, "step_start": spec.step_start,
        "step_end": spec.step_end, "size": preferences.window_size, "origin": run.step_first,
    }  # fmt: skip


def passing(found: list[Condition]) -> tuple[str, dict[str, Any]]:
    """Return the SQL of all conditions together, and their parameters."""
    sql = " and ".join(f"({condition.sql})" for condition in found)
    return sql, {name: value for condition in found for name, value in condition.parameters.items()}


def count_stages(scratch: Scratch, run: OpenRun, preferences: ExportPreferences, found: list[Condition]) -> None:
    """Fill `stages` for one run: the number of a trajectory's stage is that of the first condition it fails."""
    connection = scratch.attach(run)
    cases = " ".join(f"when ({condition.sql}) is not true then {place}" for place, condition in enumerate(found))
    _, values = passing(found)
    connection.execute("delete from stages where run = ?", (run.number,))
    connection.execute(
        f"""
        insert into stages (run, stage, tool_calls, trajectories)
        select :number, case {cases} else {len(found)} end as stage, t.tool_calls, count(*)
        {FROM_CANDIDATES} group by 2, 3
        """,
        {**parameters(run, preferences), **values},
    )
