"""What a run has: its steps, splits and environments, for whoever asks for one that it has not."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from ..amounts import listed, plural, ranges
from ..similar import did_you_mean

MOST_READ = 1000  # names of splits or environments, of which a sentence lists the first few
KIND = """
(:split is null or split is :split or (:split = 'train' and split is null and :unknown_is_train))
    and (:env is null or env is :env)
"""
ASKED = f"""
run_id = :run and {KIND} and (:first is null or step >= :first) and (:last is null or step <= :last)
"""


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
    asked = {"run": run_id, "split": split, "env": env, "first": first, "last": last}
    asked["unknown_is_train"] = unknown_is_train
    if connection.execute(f"select 1 from {schema}.prompt_groups where {ASKED} limit 1", asked).fetchone():
        return None
    name = connection.execute(f"select name from {schema}.runs where id = ?", (run_id,)).fetchone()[0]
    has, hint = _has(connection, [run_id], asked, schema), _hint(connection, [run_id], asked, schema)
    return f"The run {name} has no trajectory{_wanted(asked)}. It has {has}.{hint}"


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
    has, hint = (tell(connection, missing, asked, "main") for tell in (_has, _hint))
    return missing, f"{which} has a trajectory{_wanted(asked)}. They have {has}.{hint}"


def names_of(
    connection: sqlite3.Connection, run_ids: Sequence[int], what: str, schema: str = "main"
) -> list[str | None]:
    """Return the splits ("split") or the environments ("env") of some runs by name; None where none is recorded."""
    groups = f"{schema}.prompt_groups where run_id in ({', '.join(map(str, run_ids))})"
    rows = connection.execute(f"select distinct {what} from {groups} order by 1 limit {MOST_READ}")
    return [name for (name,) in rows]


def _hint(connection: sqlite3.Connection, run_ids: Sequence[int], asked: dict[str, Any], schema: str) -> str:
    """Return which split and environment may be meant by those that are asked for and not there."""
    hints = ""
    for what in ("split", "env"):
        if (wanted := asked.get(what)) is not None:
            names = [name for name in names_of(connection, run_ids, what, schema) if name is not None]
            hints += "" if wanted in names else did_you_mean([wanted], names)
    return hints


def _wanted(asked: dict[str, Any]) -> str:
    wanted = [f"{what} {asked[what]}" for what in ("split", "env") if asked.get(what) is not None]
    first, last = asked.get("first"), asked.get("last")
    wanted += [_steps(first, last)] if first is not None or last is not None else []
    return f" with {', '.join(wanted)}" if wanted else ""


def _steps(first: int | None, last: int | None) -> str:
    if first is None or last is None:
        return f"steps from {first} on" if last is None else f"steps up to {last}"
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _has(connection: sqlite3.Connection, run_ids: Sequence[int], asked: dict[str, Any], schema: str) -> str:
    """Return what there is of the kinds of things that are asked for."""
    # Ids are whole numbers of our own, and there may be more of them than a statement takes parameters.
    groups = f"{schema}.prompt_groups where run_id in ({', '.join(map(str, run_ids))})"
    if not connection.execute(f"select 1 from {groups} limit 1").fetchone():
        return "none at all"
    wants_steps = asked.get("first") is not None or asked.get("last") is not None
    if wants_steps and (kind := _wanted({**asked, "first": None, "last": None})):
        values = {"split": None, "env": None, "unknown_is_train": False, **asked}
        found = connection.execute(f"select distinct step from {groups} and {KIND} and step is not null", values)
        if steps := ranges(step for (step,) in found):
            return f"step{'s' if not steps.isdecimal() else ''} {steps}{kind}"
    told = []
    for what in ("split", "env"):
        if asked.get(what) is not None:
            names = names_of(connection, run_ids, what, schema)
            told.append(f"{what} {listed(str(name or 'not recorded') for name in names)}")
    if wants_steps:
        first, last = connection.execute(f"select min(step), max(step) from {groups}").fetchone()
        told += [] if first is None else [_steps(first, last)]
    return "; ".join(told) or "no steps"
