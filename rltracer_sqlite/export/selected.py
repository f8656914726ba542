"""What the index knows of the trajectories that are selected: their tool calls, branches and limits, in one pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .preferences import ExportMode
from .runs import OpenRun
from .selection import Selection

SIDES = """
with sides as (
    select k.pick, k.id from placed l join picks k on k.pick = l.pick where k.run = :run
    union all
    select k.pick, k.other from placed l join picks k on k.pick = l.pick where k.run = :run and k.other is not null
)
"""
FACTS = f"""
{SIDES}
select t.tool_calls, count(*), sum(t.branches > 1), sum(t.truncated is 1)
from sides c cross join source.trajectories t on t.id = c.id group by 1
"""
PAIRS = f"""
{SIDES}
select count(distinct case when t.branches > 1 then c.pick end),
    count(distinct case when t.truncated = 1 then c.pick end)
from sides c cross join source.trajectories t on t.id = c.id
"""


@dataclass
class Selected:
    """Counts of trajectories by their tool calls, and of trajectories, or pairs, that a trainer may mistake."""

    calls: Counter[int] = field(default_factory=Counter)
    of_several_branches: int = 0
    cut_off: int = 0  # by a limit


def selected(selection: Selection) -> Selected:
    """Return the counts over all runs of a selection; where pairs are made, a pair counts once."""
    told = Selected()
    for run in selection.runs:
        _count(told, selection, run)
    return told


def _count(told: Selected, selection: Selection, run: OpenRun) -> None:
    connection, number = selection.scratch.attach(run), {"run": run.number}
    in_pairs = selection.preferences.mode is ExportMode.PREFERENCE
    for calls, count, of_several_branches, cut_off in connection.execute(FACTS, number):
        told.calls[calls] += count
        if not in_pairs:
            told.of_several_branches += of_several_branches
            told.cut_off += cut_off
    if in_pairs:
        of_several_branches, cut_off = connection.execute(PAIRS, number).fetchone()
        told.of_several_branches += of_several_branches
        told.cut_off += cut_off
