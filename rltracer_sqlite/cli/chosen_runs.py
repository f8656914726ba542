"""The runs of an index that a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from ..sources.places import Root


def chosen_runs(connection: sqlite3.Connection, run: str | None, index: Root) -> list[tuple[int, str]]:
    """Return (id, name) of the run of this name or number, or of every run. Raises WhichRunError for none."""
    from ..index.named import named_runs, which_run
    from ..index.queries import runs
    from ..runs import WhichRunError

    known = runs(connection)
    if not known:
        raise WhichRunError(f"The index {index} holds no run yet.")
    if not (found := named_runs(known, run)):
        raise WhichRunError(which_run(known, run, index))
    return [(one.id, one.name) for one in found]


def only_run(connection: sqlite3.Connection, run: str | None, index: Root) -> tuple[int, str]:
    """Return (id, name) of the run of this name or number, or of the only one. Raises WhichRunError for several."""
    from ..index.named import which_run
    from ..index.queries import runs
    from ..runs import WhichRunError

    found = chosen_runs(connection, run, index)
    if len(found) > 1:
        raise WhichRunError(which_run(runs(connection), run, index, "Give one with --run."))
    return found[0]
