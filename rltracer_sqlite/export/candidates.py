"""The candidates of a run, read from its index for the quota of each prompt, and what the quotas allow of them.

The index is read once, in the order in which it lies on the disk; only then are the trajectories of a prompt brought
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .conditions import Condition, accepted
from .preferences import ExportMode, ExportPreferences
from .ranking import Pick, Ranking
from .runs import OpenRun, Progress
from .scope import CANDIDATES, parameters, staged
from .scratch import Scratch

TOLD_EVERY = 1000  # prompt groups


def rank_candidates(
    scratch: Scratch,
    run: OpenRun,
    preferences: ExportPreferences,
    found: list[Condition],
    progress: Progress | None = None,
) -> None:
    """Fill `picks` for one run with what the quota of each unit allows, and `stages` with what each stage drops."""
    for table in ("picks", "stages", "calls", "pairs"):
        scratch.connection.execute(f"delete from {table} where run = ?", (run.number,))
    if _takes_all(preferences):
        _take_all(scratch, run, preferences, found)
        return
    ranking = Ranking(run, preferences)
    rows: Iterable[Any] = _read_groups(scratch, run, preferences, found, ranking)
    if progress is not None:
        total = scratch.connection.execute("select count(*) from members where run = ?", (run.number,)).fetchone()[0]
        rows = _watched(rows, total, progress)
    names, marks = ", ".join(Pick._fields), ", ".join("?" * len(Pick._fields))
    scratch.insert(f"insert into picks ({names}) values ({marks})", ranking.picks(rows))
    scratch.insert("insert into stages values (?, ?, ?)", ((run.number, *one) for one in ranking.stages.items()))
    scratch.insert("insert into calls values (?, ?, ?)", ((run.number, *one) for one in ranking.calls.items()))
    scratch.insert("insert into pairs values (?, ?)", [(run.number, ranking.pairs)])


def _takes_all(wanted: ExportPreferences) -> bool:
    """Say whether every candidate is a pick and nothing asks for their order."""
    in_order = wanted.is_limited or wanted.include_provenance or wanted.mode is ExportMode.PREFERENCE
    return wanted.quota is None and not in_order


def _take_all(scratch: Scratch, run: OpenRun, preferences: ExportPreferences, found: list[Condition]) -> None:
    cases, passes, values = staged(scratch, run, found)
    values = {**parameters(run, preferences), **values}
    connection = scratch.attach(run)
    candidates = f"{CANDIDATES} where m.run = :number and g.fits and {accepted(preferences)}"
    connection.execute(
        f"""
        insert into stages
        select :number, {cases} as stage, count(*) {candidates} and ({passes}) is not true group by stage
        """,
        values,
    )
    connection.execute(
        f"""
        insert into calls
        select :number, t.tool_calls, count(*) {candidates} and {passes} group by t.tool_calls
        """,
        values,
    )
    connection.execute(
        f"insert into picks (run, unit, id, slot) select :number, m.unit, t.id, 1 {candidates} and {passes}", values
    )


def _read_groups(
    scratch: Scratch, run: OpenRun, preferences: ExportPreferences, found: list[Condition], ranking: Ranking
) -> Iterable[Any]:
    """Return a row per prompt group, units together: unit, step, its trajectories as JSON, and the prompt.

    A trajectory is a list of its columns, or the number of the stage that it fails.
    """
    cases, passes, values = staged(scratch, run, found)
    prompts, facts = "", ""
    if ranking.needs_prompts:
        prompts = "cross join source.prompts p on p.id = g.prompt_id"
        facts = ", g.window, g.split, g.env, p.key, p.task"
    columns = ", ".join(ranking.columns.values())
    # JSON costs far less than a row per trajectory.
    return scratch.attach(run).execute(
        f"""
        select * from (
            select m.unit as unit, m.step as step,
                json_group_array(case when {passes} then json_array({columns}) else {cases} end){facts}
            from members m cross join groups g on g.number = m.grp {prompts}
            cross join source.trajectories t on t.prompt_group_id = m.prompt_group_id
            where m.run = :number and g.fits and {accepted(preferences)}
            group by m.prompt_group_id
        )
        order by unit
        """,
        {**parameters(run, preferences), **values},
    )


def _watched(rows: Iterable[Any], total: int, progress: Progress) -> Iterator[Any]:
    """Yield rows, telling now and then how far it is: a browser's export ends here when its visitor leaves."""
    for number, row in enumerate(rows, start=1):
        if number % TOLD_EVERY == 0:
            progress("Selecting", number, total)
        yield row
