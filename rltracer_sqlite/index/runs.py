"""The runs of an index: making one, naming it, and its success rule."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from .database import transaction
from .rows import DEFAULT_SUCCESS
from .statistics import apply_success, refresh_steps, utc_now


def ensure_run(
    connection: sqlite3.Connection, source: str, root: Path, name: str | None = None, tokenizer: str | None = None
) -> int:
    """Return the id of the run at `root`, making its row when it is new."""
    where = str(root.resolve())
    found = connection.execute("select id, name from runs where root = ?", (where,)).fetchone()
    if found:
        if name and name != found[1]:
            connection.execute("update runs set name = ? where id = ?", (_free_name(connection, name), found[0]))
        if tokenizer:
            connection.execute("update runs set tokenizer = ? where id = ?", (tokenizer, found[0]))
        return int(found[0])
    cursor = connection.execute(
        """
        insert into runs (name, root, source, tokenizer, success_path, success_threshold, created_at)
        values (?, ?, ?, ?, ?, ?, ?)
        """,
        (_free_name(connection, name or run_name(root)), where, source, tokenizer, *DEFAULT_SUCCESS, utc_now()),
    )
    return int(cursor.lastrowid or 0)


def set_success(connection: sqlite3.Connection, run_id: int, path: str, threshold: float) -> None:
    """Set a run's success rule and apply it to what is indexed, without reading a file."""
    with transaction(connection):
        connection.execute(
            "update runs set success_path = ?, success_threshold = ?, success_chosen = 1 where id = ?",
            (path, threshold, run_id),
        )
        apply_success(connection, run_id)
        refresh_steps(connection, run_id)


def run_name(root: Path) -> str:
    """Return a short name for a run: its folder's, or that of the experiment around a folder of a fixed name."""
    fixed = {"rollouts", "run_default", "token_exports", "outputs", "evals", "batches"}
    path = root.resolve()
    while path.name in fixed and path.parent != path:
        path = path.parent
    return path.name or "run"


def _free_name(connection: sqlite3.Connection, wanted: str) -> str:
    name, number = wanted, 2
    while connection.execute("select 1 from runs where name = ?", (name,)).fetchone():
        name, number = f"{wanted} ({number})", number + 1
    return name
