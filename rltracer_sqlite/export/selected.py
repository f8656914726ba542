"""What the index knows of the trajectories that are selected: their tool calls, branches, limits and outcomes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..index.columns import quoted
from ..reward_parts import RewardParts
from .conditions import column_of
from .met import MOST_SHOWN, Met
from .preferences import ExportMode
from .runs import OpenRun
from .selection import Selection

MOST_PARTS = 100  # rewards of one rule that are looked into
PICKS = "from placed l join picks k on k.pick = l.pick"
SIDES = f"""
with sides as (
    select k.id, 0 as side {PICKS} where k.run = :run
    union all
    select k.other, 1 {PICKS} where k.run = :run and k.other is not null
)
"""
OF_SIDES = "from sides c cross join source.trajectories t on t.id = c.id"
FACTS = f"{SIDES} select t.tool_calls, count(*), sum(t.branches > 1), sum(t.truncated is 1) {OF_SIDES} group by 1"
PAIRS = f"""
select sum(t.branches > 1 or u.branches > 1), sum(t.truncated is 1 or u.truncated is 1),
    sum(t.success = 0), sum(t.success is null), sum(u.success = 1), sum(u.success is null)
{PICKS} cross join source.trajectories t on t.id = k.id cross join source.trajectories u on u.id = k.other
where k.run = :run
"""
# What is counted, by its name below, as SQL that is true of a trajectory `t` on a side `c`, 0 for the chosen one.
COUNTED = {
    "of_several_branches": "t.branches > 1",
    "cut_off": "t.truncated is 1",
    "chosen_failed": "c.side = 0 and t.success = 0",
    "chosen_unscored": "c.side = 0 and t.success is null",
    "rejected_passed": "c.side = 1 and t.success = 1",
    "rejected_unscored": "c.side = 1 and t.success is null",
}


@dataclass
class Partly:
    """Of what passed by a rule on several rewards together: how much has 0 or less in one of them."""

    parts: RewardParts
    threshold: float  # of the rule
    passed: int = 0
    met: Met = field(default_factory=Met)
    by_part: Counter[str] = field(default_factory=Counter)  # of these, by the path of the reward


@dataclass
class Selected:
    """Counts of trajectories by their tool calls, and of trajectories, or pairs, that a trainer may mistake."""

    count: int = 0  # of trajectories, or pairs
    calls: Counter[int] = field(default_factory=Counter)
    of_several_branches: Met = field(default_factory=Met)
    cut_off: Met = field(default_factory=Met)  # by a limit
    chosen_failed: Met = field(default_factory=Met)  # in pairs, as those below
    chosen_unscored: Met = field(default_factory=Met)
    rejected_passed: Met = field(default_factory=Met)
    rejected_unscored: Met = field(default_factory=Met)
    partly: dict[str, Partly] = field(default_factory=dict)  # by the rule, in words; in pairs of the chosen ones


def selected(selection: Selection) -> Selected:
    """Return the counts over all runs of a selection; where pairs are made, a pair counts once."""
    told = Selected(selection.count())
    for run in selection.runs:
        _count(told, selection, run)
        if run.parts is not None:
            known = Partly(run.parts, run.known.success_threshold)
            _count_parts(told.partly.setdefault(run.success_in_words, known), selection, run, run.parts)
    return told


def _count_parts(told: Partly, selection: Selection, run: OpenRun, parts: RewardParts) -> None:
    connection, number = selection.scratch.attach(run), {"run": run.number}
    columns = {path: column for path in parts.paths[:MOST_PARTS] if (column := column_of(connection, path))}
    if not columns:
        return
    short = {path: f"{quoted(column)} <= 0" for path, column in columns.items()}
    passed = f"{OF_SIDES} where c.side = 0 and +t.success = 1"
    some = " or ".join(short.values())
    sums = ", ".join(f"sum({one})" for one in (f"({some})", *short.values()))
    count, of_some, *of_each = connection.execute(f"{SIDES} select count(*), {sums} {passed}", number).fetchone()
    told.passed += count
    told.by_part.update({path: count for path, count in zip(short, of_each, strict=True) if count})
    if of_some:
        first = f"{SIDES} select t.id {passed} and ({some}) limit {MOST_SHOWN + 1}"
        ids = sorted(id for (id,) in connection.execute(first, number))
        told.met.add((selection.called(run, id) for id in ids), of_some)


def _count(told: Selected, selection: Selection, run: OpenRun) -> None:
    connection, number = selection.scratch.attach(run), {"run": run.number}
    counts = Counter[str]()
    for calls, count, of_several_branches, cut_off in connection.execute(FACTS, number):
        if calls is not None:
            told.calls[calls] += count
        counts.update(of_several_branches=of_several_branches, cut_off=cut_off)
    if selection.preferences.mode is ExportMode.PREFERENCE:
        counts = Counter(dict(zip(COUNTED, connection.execute(PAIRS, number).fetchone(), strict=True)))
    for name, count in counts.items():
        if count:
            first = f"{SIDES} select t.id {OF_SIDES} where {COUNTED[name]} limit {MOST_SHOWN + 1}"
            ids = sorted(id for (id,) in connection.execute(first, number))
            getattr(told, name).add((selection.called(run, id) for id in ids), count)
