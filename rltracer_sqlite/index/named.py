"""Which run of an index is meant by a name, and what to say where none or several are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from ..amounts import LIST_COLUMNS, ONE_LINE, listed, shortened_name
from ..arguments import as_integer, shown
from ..similar import did_you_mean

if TYPE_CHECKING:
    from .queries import Run

LONGEST_NAME = 60  # characters of the name of a run in a sentence
MOST_LINES = 20  # runs, where they have a line each


def name_or_number(run: Any) -> str | int | None:
    """Return the name or the number of a run, or None. Raises TypeError for what can be neither."""
    found = run if isinstance(run, str) else as_integer(run)
    if found is None and run is not None:
        raise TypeError(f"run is {shown(run)}: it is the name or the number of a run.")
    return found


def named_runs(known: Sequence[Run], wanted: str | int | None) -> list[Run]:
    """Return the run of this name, else of this number, else the only one whose name begins so.

    Returns every run where none is named, and [] where the name means none of them or more than one. Raises TypeError.
    """
    if (wanted := name_or_number(wanted)) is None:
        return list(known)
    same = [run for run in known if run.name == wanted] or [run for run in known if str(run.id) == str(wanted)]
    beginning = _beginning(known, wanted)
    return same or (beginning if len(beginning) == 1 else [])


def run_names(known: Sequence[Run]) -> str:
    """Return the names of runs for a sentence, of very many the first, and long ones without their middle."""
    return listed(shortened_name(run.name, LONGEST_NAME) for run in known) or "none"


def which_run(known: Sequence[Run], wanted: str | int | None, index: object = None, how: str = "") -> str:
    """Return what asks for a run of an index, or says that its name means none of them or several: and their names.

    `how` is a sentence on how one is given. Names that are too long for a sentence have a line each.
    """
    several = [] if wanted is None else _beginning(known, wanted)
    called = "the index" if index is None else index
    if several:
        begin = f"Which run of {called}? The names of several begin with {shown(str(wanted))}:"
        return _with_names(begin, several, index, how)
    if wanted is None:
        return _with_names(f"Which run of {called}? It holds:", known, index, how)
    begin = f"The index{f' {index}' if index else ''} has no run {shown(str(wanted))}. It holds:"
    hint = did_you_mean([wanted], [run.name for run in known]).strip() if isinstance(wanted, str) else ""
    return _with_names(begin, known, index, " ".join(filter(None, (hint, how))))


def _with_names(begin: str, known: Sequence[Run], index: object, end: str) -> str:
    """Return the beginning of a sentence with the names of runs in it, or with lines of their numbers and names."""
    names = [shortened_name(run.name, LONGEST_NAME).translate(ONE_LINE) for run in known]
    if len(", ".join(names)) <= LIST_COLUMNS:
        return " ".join(filter(None, (begin, f"{', '.join(names) or 'none'}.", end)))
    width = len(str(known[-1].id))
    lines = [f"  {run.id:{width}}  {name}" for run, name in zip(known[:MOST_LINES], names, strict=False)]
    if (more := len(known) - MOST_LINES) > 0:
        place = index if isinstance(index, Path) else "FILE"
        lines.append(f"  and {more:,} more: rltracer runs {quote(str(place))} lists them")
    return "\n".join(filter(None, (begin, *lines, end)))


def _beginning(known: Sequence[Run], wanted: str | int) -> list[Run]:
    return [run for run in known if isinstance(wanted, str) and wanted and run.name.startswith(wanted)]
