"""Trajectories that are asked for one by one: by their ids in the index, or by their recorded ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..amounts import plural, shortened
from ..arguments import as_integer, is_text, shown
from ..index.queries import row_number
from ..outcomes import NAMED_BEFORE
from .conditions import accepted
from .errors import ExportError
from .preferences import Acceptance, ExportMode, ExportPreferences
from .runs import OpenRun
from .scratch import Scratch

MOST_SHOWN = 5  # unknown ids in a sentence
LONGEST_ID = 40  # characters of an id in a sentence
# A number is an id of the index, or where no run has that one, a recorded id like any other text.
WAYS = ("t.id = a.number and t.run_id = :id", "t.run_id = :id and t.uid = a.given")


def find_named(scratch: Scratch, runs: Sequence[OpenRun]) -> None:
    """Fill `named` with the trajectories that are asked for by id.

    Ids that are asked of several runs, as those of an index are, have to be each of one of them at least. Raises
    ExportError for ids of no trajectory.
    """
    lists: dict[int, list[OpenRun]] = {}
    for run in runs:
        if run.spec.ids is not None:
            lists.setdefault(id(run.spec.ids), []).append(run)
    for list_number, several in enumerate(lists.values()):
        names = _names(several[0].spec.ids or ())
        asked = ((list_number, name, row_number(name)) for name in names)
        scratch.insert("insert or ignore into asked (list, given, number) values (?, ?, ?)", asked)
        for same in WAYS:
            for run in several:
                _find(scratch, run, list_number, same)
            scratch.connection.execute("update asked set is_found = 1 where place in (select asked from named)")
        _refuse_unknown(scratch, several, list_number)


def _names(ids: Iterable[Any]) -> Iterator[str]:
    for one in ids:
        name = one if (number := as_integer(one)) is None else str(number)
        if not is_text(name):
            raise ExportError(f"An id is {shown(one)}: it is a trajectory's number in the index, or its recorded id.")
        yield name


def _find(scratch: Scratch, run: OpenRun, list_number: int, same: str) -> None:
    with scratch.index_errors(run):
        scratch.attach(run).execute(
            f"""
            insert or ignore into named (run, id, asked)
            select :number, t.id, a.place from asked a cross join source.trajectories t on {same}
            where a.list = :list and not a.is_found
            """,
            {"number": run.number, "id": run.id, "list": list_number},
        )


def _refuse_unknown(scratch: Scratch, runs: Sequence[OpenRun], list_number: int) -> None:
    counts = "select count(*), ifnull(sum(not is_found), 0) from asked where list = ?"
    given, unknown = scratch.connection.execute(counts, (list_number,)).fetchone()
    if not given:
        raise ExportError("No trajectory is asked for: the ids are empty.")
    if unknown:
        sql = "select given from asked where list = ? and not is_found order by place limit ?"
        names = [row[0] for row in scratch.connection.execute(sql, (list_number, MOST_SHOWN))]
        told = ", ".join(shortened(name, LONGEST_ID) for name in names)
        more = f" and {unknown - len(names):,} more" if unknown > len(names) else ""
        of_all = f"{unknown:,} of {given:,}"
        where = _in_another_run(scratch, runs, names[0])
        raise ExportError(f"No trajectory in the asked runs has these ids ({of_all}): {told}{more}.{where}")


def _in_another_run(scratch: Scratch, runs: Sequence[OpenRun], name: str) -> str:
    """Return a sentence on a trajectory of another run of the indexes, which was not asked for; "" for none."""
    sql = """
    select r.name from source.trajectories t join source.runs r on r.id = t.run_id
    where t.id = :number union all
    select r.name from source.runs r join source.trajectories t on t.run_id = r.id where t.uid = :name limit 1
    """
    for run in runs:
        with scratch.index_errors(run):
            found = scratch.attach(run).execute(sql, {"number": row_number(name), "name": name}).fetchone()
        if found:
            called = shortened(str(found[0]), LONGEST_ID)
            return f" {shortened(name, LONGEST_ID)} is of the run {called}, which is not asked for."
    return ""


def left_out(scratch: Scratch, runs: Sequence[OpenRun], preferences: ExportPreferences) -> list[str]:
    """Return a sentence on the named trajectories that the steps, the split or the acceptance leave out, if any are."""
    found = []
    for run in runs:
        with scratch.index_errors(run):
            found += [_counted(scratch, run, preferences)] if run.spec.ids is not None else []
    named, inside, taken = (sum(counts) for counts in zip(*found, strict=True)) if found else (0, 0, 0)
    reasons = []
    if inside < named:
        reasons.append(f"{named - inside:,} not of the asked steps and split")
    if taken < inside:
        is_pairs = preferences.mode is ExportMode.PREFERENCE
        asked = NAMED_BEFORE.get(Acceptance(preferences.acceptance).value)
        outcome = "without a reward" if is_pairs else f"that have not {asked} (acceptance='any' takes them)"
        reasons.append(f"{inside - taken:,} {outcome}")
    return [f"Of {plural(named, 'trajectory')} asked for by id: {', '.join(reasons)}."] if reasons else []


def _counted(scratch: Scratch, run: OpenRun, preferences: ExportPreferences) -> tuple[int, int, int]:
    """Return how many trajectories of a run are named, how many of them are available, and accepted."""
    row = scratch.attach(run).execute(
        f"""
        select count(*), count(m.grp), ifnull(sum(m.grp is not null and {accepted(preferences)}), 0)
        from (select distinct id from named where run = :number) n
        cross join source.trajectories t on t.id = n.id
        left join members m on m.run = :number and m.prompt_group_id = t.prompt_group_id
        """,
        {"number": run.number},
    )
    named, inside, taken = row.fetchone()
    return named, inside, taken
