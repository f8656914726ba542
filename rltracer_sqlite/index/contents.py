"""What a run has: its steps, splits and environments, for whoever asks for one that it has not."""

from __future__ import annotations

import sqlite3

MOST_NAMED = 8
ASKED = """
run_id = :run and (:split is null or split is :split or (:split = 'train' and split is null and :unknown_is_train))
    and (:env is null or env is :env)
    and (:first is null or step >= :first) and (:last is null or step <= :last)
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
    wanted = [f"split {split}"] if split is not None else []
    wanted += [f"env {env}"] if env is not None else []
    wanted += [_steps(first, last)] if first is not None or last is not None else []
    asked_for = f" with {', '.join(wanted)}" if wanted else ""
    return f"{name} has no trajectory{asked_for}. {_has(connection, run_id, schema)}"


def _steps(first: int | None, last: int | None) -> str:
    if first is None or last is None:
        return f"steps from {first} on" if last is None else f"steps up to {last}"
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _has(connection: sqlite3.Connection, run_id: int, schema: str) -> str:
    first, last = connection.execute(
        f"select min(step), max(step) from {schema}.prompt_groups where run_id = ?", (run_id,)
    ).fetchone()
    told = [] if first is None else [_steps(first, last)]
    for what in ("split", "env"):
        names = connection.execute(
            f"select distinct {what} from {schema}.prompt_groups where run_id = ? order by 1 limit ?",
            (run_id, MOST_NAMED + 1),
        ).fetchall()
        listed = ["not recorded" if name is None else str(name) for (name,) in names[:MOST_NAMED]]
        more = " and more" if len(names) > MOST_NAMED else ""
        told += [f"{what} {', '.join(listed)}{more}"] if listed else []
    return f"It has {'; '.join(told)}." if told else "It has none at all."
