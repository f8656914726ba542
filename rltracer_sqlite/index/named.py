"""Which run of an index is meant by a name, and what to say where none or several are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from ..amounts import listed, shortened
from ..arguments import as_integer, shown
from ..similar import did_you_mean

if TYPE_CHECKING:
    from .queries import Run

LONGEST_NAME = 60  # characters of the name of a run in a sentence


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
    """Return the names of runs for a sentence, of very many the first, and long ones cut off."""
    return listed(shortened(run.name, LONGEST_NAME) for run in known) or "none"


def which_run(known: Sequence[Run], wanted: str | int | None, index: object = None) -> str:
    """Return a sentence that asks for a run of an index, or says that its name means none of them or several."""
    several = [] if wanted is None else _beginning(known, wanted)
    called = "the index" if index is None else index
    if several:
        names = _names_and_list(several, index)
        return f"Which run of {called}? The names of several begin with {shown(str(wanted))}: {names}."
    asked = (
        f"Which run of {called}?"
        if wanted is None
        else f"The index{f' {index}' if index else ''} has no run {shown(str(wanted))}."
    )
    hint = did_you_mean([wanted], [run.name for run in known]) if isinstance(wanted, str) else ""
    return f"{asked} It holds: {_names_and_list(known, index)}.{hint}"


def _names_and_list(known: Sequence[Run], index: object) -> str:
    """Return the names of runs, and where these are not all of them, what lists all."""
    names = run_names(known)
    place = index if isinstance(index, Path) else "FILE"
    is_all = names == ", ".join(shortened(run.name, LONGEST_NAME) for run in known)
    return names if is_all or not known else f"{names}; rltracer runs {quote(str(place))} lists them"


def _beginning(known: Sequence[Run], wanted: str | int) -> list[Run]:
    return [run for run in known if isinstance(wanted, str) and wanted and run.name.startswith(wanted)]
