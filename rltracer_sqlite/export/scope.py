"""What is available: the groups of the asked steps with their pass rates, and how many trajectories pass each stage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .conditions import Condition, accepted
from .preferences import Acceptance, ExportMode, ExportPreferences
from .runs import OpenRun
from .scratch import Scratch

SCOPE = """
run_id = :id
    and (:step_start is null or step >= :step_start) and (:step_end is null or step <= :step_end)
    and (:split is null or split is :split or (:split = 'train' and split is null))
"""
# A range of steps, told by its first one, has no window for what has no step.
WINDOW = "case when step is null then null when :size is null then 0 else (step - :origin) / :size end"
CANDIDATES = """
from members m
cross join groups g on g.number = m.grp
cross join source.trajectories t on t.prompt_group_id = m.prompt_group_id
"""
# Ranking them by window functions costs four times as much as looking each up by its key.
GROUP = (
    "g.run = :number and g.prompt_id = b.prompt_id and g.window is b.window and g.split is b.split and g.env is b.env"
)


def find_groups(scratch: Scratch, run: OpenRun, preferences: ExportPreferences) -> None:
    """Fill `groups`, `members` and `chosen` for one run."""
    connection = scratch.attach(run)
    available = f"(select *, {WINDOW} as window from source.prompt_groups where {SCOPE})"
    low, high = preferences.difficulty.bounds
    values = parameters(run, preferences)
    connection.execute(
        f"""
        insert into groups (run, window, split, env, prompt_id, trajectories, scored, successes, fits)
        select :number, window, split, env, prompt_id, sum(trajectories), sum(scored), sum(successes),
            case when :low is null and :high is null then 1 when sum(scored) = 0 then 0
                else (:low is null or sum(successes) * 1.0 / sum(scored) >= :low)
                    and (:high is null or sum(successes) * 1.0 / sum(scored) <= :high) end
        from {available} group by prompt_id, window, split, env
        """,
        {**values, "low": low, "high": high},
    )
    unit = "g.number"
    if preferences.mode is ExportMode.RL:
        same = "h.run = g.run and h.prompt_id = g.prompt_id and h.window is g.window"
        unit = f"(select min(h.number) from groups h where {same})"
    connection.execute(
        f"""
        insert into members (run, prompt_group_id, step, grp, unit)
        select :number, b.id, b.step, g.number, {unit} from {available} b cross join groups g on {GROUP}
        """,
        values,
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


def count_accepted(scratch: Scratch, run: OpenRun, preferences: ExportPreferences) -> tuple[int, int, int, int]:
    """Return how many trajectories of a run are available, scored, accepted, and of an accepted difficulty besides.

    In preference mode those of an accepted difficulty are counted when they are ranked; they lack here.
    """
    connection, values = scratch.attach(run), {"number": run.number}
    counted = {
        Acceptance.ANY: "trajectories",
        Acceptance.CORRECT: "successes",
        Acceptance.INCORRECT: "scored - successes",
    }[Acceptance(preferences.acceptance)]
    available, scored, chosen, fitting = connection.execute(
        f"""
        select ifnull(sum(trajectories), 0), ifnull(sum(scored), 0), ifnull(sum({counted}), 0),
            ifnull(sum(case when fits then {counted} end), 0)
        from groups where run = :number
        """,
        values,
    ).fetchone()
    if preferences.mode is ExportMode.PREFERENCE:
        # The index sums up no rewards, so they are counted.
        sums = f"select count(*) {CANDIDATES} where m.run = :number and not g.fits and {accepted(preferences)}"
        chosen, fitting = connection.execute(sums, values).fetchone()[0], 0
    return available, scored, chosen, fitting


def staged(scratch: Scratch, run: OpenRun, found: list[Condition]) -> tuple[str, str, dict[str, Any]]:
    """Return SQL for the number of the first condition that a trajectory fails (their count where it fails none),
    SQL that is true where it fails none, and the parameters of both."""
    live = [condition if _is_live(scratch, run, condition) else replace(condition, sql="1") for condition in found]
    cases = " ".join(f"when ({condition.sql}) is not true then {place}" for place, condition in enumerate(live))
    passes = " and ".join(f"({condition.sql})" for condition in live)
    values = {name: value for condition in live for name, value in condition.parameters.items()}
    return f"case {cases} else {len(live)} end", passes, values


def _is_live(scratch: Scratch, run: OpenRun, condition: Condition) -> bool:
    # Looking into an empty table for each of a million trajectories costs a second.
    if not condition.unread:
        return True
    sql = "select 1 from unfit where run = ? and stage = ? limit 1"
    return scratch.connection.execute(sql, (run.number, condition.stage)).fetchone() is not None
