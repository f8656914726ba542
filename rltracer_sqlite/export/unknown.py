"""Names that a filter asks for and no run has: a misspelt one beside others would be dropped without a word."""

from __future__ import annotations

from collections.abc import Sequence

from ..amounts import listed, plural
from ..index.columns import quoted
from ..index.contents import names_of
from ..similar import LONGEST_COMPARED, did_you_mean
from .conditions import COLUMNS, LISTS, column_of
from .errors import ExportError
from .filters import FieldFilter
from .runs import OpenRun
from .scratch import Scratch

MOST_KNOWN = 1000  # values of a field among which the one that was meant is looked for


def refuse_unknown_envs(scratch: Scratch, runs: Sequence[OpenRun], filters: Sequence[FieldFilter]) -> None:
    """Raise ExportError for environments that no run has, with those that there are.

    Where no run has any, the condition that leaves nothing says so.
    """
    asked = list(
        dict.fromkeys(name for one in filters if _column(scratch, runs[0], one) == "env" for name in names(one))
    )
    if not asked:
        return
    known: dict[str, None] = {}
    for run in runs:
        with scratch.index_errors(run):
            found = names_of(scratch.attach(run), [run.id], "env", "source")
            known |= dict.fromkeys(name for name in found if name is not None)
    if known and (unknown := [name for name in asked if name not in known]):
        who, has = (f"The run {runs[0].name} has no", "It has") if len(runs) == 1 else _several(runs)
        hint = did_you_mean(unknown, known)
        raise ExportError(f"{who} trajectory with env {listed(unknown)}. {has} env {listed(sorted(known))}.{hint}")


def unknown_values(scratch: Scratch, runs: Sequence[OpenRun], filters: Sequence[FieldFilter]) -> list[str]:
    """Return a sentence for each filter that allows several names, some of which no run records at its path.

    Unlike an environment such a name can be meant all the same: one of another system, or an error that has not come.
    """
    said = []
    for one in filters:
        if len(asked := names(one)) > 1 and all(_column(scratch, run, one) not in (None, "env") for run in runs):
            unknown = [name for name in asked if not any(_records(scratch, run, one, name) for run in runs)]
            if unknown and len(unknown) < len(asked):
                hint = did_you_mean(unknown, _known(scratch, runs, one))
                said.append(f"No trajectory has {one.path} {' or '.join(unknown)}.{hint}")
    return said


def recorded_paths(scratch: Scratch, run: OpenRun, filters: Sequence[FieldFilter]) -> dict[str, bool]:
    """Return for each path of a filter that is a column of a run's index whether a record of the run has a value."""
    found = {}
    for one in filters:
        if (column := _column(scratch, run, one)) is not None:
            sql = f"select 1 from source.trajectories t where t.run_id = ? and {quoted(column)} is not null limit 1"
            with scratch.index_errors(run):
                found[one.path] = scratch.attach(run).execute(sql, (run.id,)).fetchone() is not None
    return found


def without_value(scratch: Scratch, runs: Sequence[OpenRun], path: str, is_read: bool) -> str:
    """Return the sentence on a path at which no record has a value, with the names that are spelt like it.

    `is_read`: only reading the records has told, which is done of those that the other conditions leave.
    """
    if not is_read:
        return f"No record has a value at {path}."
    from difflib import get_close_matches  # only a slip pays for it

    known: dict[str, None] = {}
    for run in runs:
        with scratch.index_errors(run):
            known |= dict.fromkeys(row[0] for row in scratch.attach(run).execute("select path from source.fields"))
    similar = get_close_matches(path[:LONGEST_COMPARED], sorted({*known, *COLUMNS} - {path}), n=3)
    hint = f"Similar: {', '.join(similar)}." if similar else "The table fields of the index lists what is recorded."
    return f"No record that the other conditions leave has a value at {path}. {hint}"


def names(one: FieldFilter) -> list[str]:
    """Return the texts that a filter allows, without those that stand for a number or a truth value beside them."""
    values = one.allowed_values or ()
    spelt = {text for text in values if isinstance(text, str) if any(_spells(text, value) for value in values)}
    return [text for text in values if isinstance(text, str) and text not in spelt]


def _spells(text: str, value: object) -> bool:
    if isinstance(value, str):
        return False
    try:
        return text.lower() == str(value).lower() or float(text) == value
    except ValueError:
        return False


def _several(runs: Sequence[OpenRun]) -> tuple[str, str]:
    return f"None of the {plural(len(runs), 'run')} has a", "They have"


def _column(scratch: Scratch, run: OpenRun, one: FieldFilter) -> str | None:
    with scratch.index_errors(run):
        return column_of(scratch.attach(run), one.path)


def _recorded(scratch: Scratch, run: OpenRun, one: FieldFilter) -> tuple[str, str]:
    """Return SQL for the rows of a run, and for the value at the path of a filter in each."""
    column = str(_column(scratch, run, one))
    if column in LISTS:
        return f"source.trajectories t, json_each({quoted(column)}) e where t.run_id = :run", "e.value"
    return "source.trajectories t where t.run_id = :run", quoted(column)


def _records(scratch: Scratch, run: OpenRun, one: FieldFilter, name: str) -> bool:
    with scratch.index_errors(run):
        rows, value = _recorded(scratch, run, one)
        sql = f"select 1 from {rows} and {value} is :name limit 1"
        return scratch.attach(run).execute(sql, {"run": run.id, "name": name}).fetchone() is not None


def _known(scratch: Scratch, runs: Sequence[OpenRun], one: FieldFilter) -> list[str]:
    found: dict[str, None] = {}
    for run in runs:
        with scratch.index_errors(run):
            rows, value = _recorded(scratch, run, one)
            sql = f"select distinct {value} from {rows} and typeof({value}) = 'text' limit {MOST_KNOWN}"
            found |= {name: None for (name,) in scratch.attach(run).execute(sql, {"run": run.id})}
    return list(found)
