"""What a run has: its steps, splits and environments, for whoever asks for one that it has not."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from ..amounts import listed, plural
from ..similar import did_you_mean
from .elsewhere import Groups, asked_for


def nothing_there(
    connection: sqlite3.Connection,
    run_id: int,
    *,
    split: str | None = None,
    env: str | None = None,
    first: int | None = None,
    last: int | None = None,
    unknown_is_train: bool = False,
    schema: str = "main",
) -> str | None:
    """Return a sentence that says what a run has instead, or None where it has what is asked for.

    `unknown_is_train`: a trajectory of which no split is known counts as train.
    """
    asked = {"split": split, "env": env, "first": first, "last": last, "unknown_is_train": unknown_is_train}
    groups = Groups(connection, [run_id], asked, schema=schema)
    if groups.any():
        return None
    row = connection.execute(f"select name from {schema}.runs where id = ?", (run_id,)).fetchone()
    if row is None:  # it was removed meanwhile
        return "The run is not in the index any more."
    return f"The run {row[0]} has no trajectory{asked_for(asked)}. It has {_has(groups)}"


def lacking(connection: sqlite3.Connection, run_ids: Sequence[int], **asked: Any) -> tuple[list[int], str]:
    """Return which of some runs have nothing of what is asked for, as `nothing_there` takes it, and a sentence on them.

    The sentence is empty where all of them have some.
    """
    said = {run_id: nothing_there(connection, run_id, **asked) for run_id in run_ids}
    missing = [run_id for run_id, sentence in said.items() if sentence is not None]
    if len(missing) < 2:
        return missing, "".join(said[run_id] or "" for run_id in missing)
    names = dict(connection.execute("select id, name from runs"))
    which = f"None of the {plural(len(said), 'run')}" if len(missing) == len(said) else "None of"
    which += "" if len(missing) == len(said) else f" {listed(names[run_id] for run_id in missing)}"
    has = _has(Groups(connection, missing, asked))
    return missing, f"{which} has a trajectory{asked_for(asked)}. They have {has}"


def names_of(
    connection: sqlite3.Connection, run_ids: Sequence[int], what: str, schema: str = "main"
) -> list[str | None]:
    """Return the splits ("split") or the environments ("env") of some runs by name; None where none is recorded."""
    return Groups(connection, run_ids, schema=schema).names(what)


def _has(groups: Groups) -> str:
    """Return where there is what is asked for, and which split and environment may be meant by those that there are."""
    hints = ""
    for what in ("split", "env"):
        if (wanted := groups.asked.get(what)) is not None:
            names = [name for name in groups.names(what, ("step", "split", "env")) if name is not None]
            hints += "" if wanted in names else did_you_mean([wanted], names)
    return f"{', and '.join(groups.elsewhere()) or 'none at all'}.{hints}"
