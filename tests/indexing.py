"""Indexing in tests: a run into a database, and short questions to it."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.index.refresh import Refreshed, refresh_run
from rltracer_sqlite.index.runs import ensure_run, set_success
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import Source
from rltracer_sqlite.stopping import Stopped

TIME = re.compile(r"\d{4}-\d\d-\d\d[ T][\d:.+]+Z?")


def index(
    database: Path,
    root: Path,
    success: tuple[str, float] | None = None,
    source: Source | None = None,
    **options: Any,
) -> Refreshed:
    """Bring `database` up to date with the run at `root`."""
    source = source or source_for(root)
    connection = open_for_writing(database)
    try:
        run_id = ensure_run(connection, source, root)
        if success:
            set_success(connection, run_id, *success)
        return refresh_run(connection, source, root, run_id, **options)
    finally:
        finish_writing(connection)


def stopped_after(commits: int, database: Path, root: Path) -> None:
    """Index, and stop after so many commits in the middle of the reading."""
    left = iter(range(1, commits))

    def stop(*_: int) -> None:
        if next(left, None) is None:
            raise Stopped

    with pytest.raises(Stopped):
        index(database, root, progress=stop)


def copied(made: Path, here: Path) -> Path:
    """Copy a folder of runs and of their index, run.sqlite, as if they had been written and indexed where they go."""
    shutil.copytree(made, here, dirs_exist_ok=True)
    connection = sqlite3.connect(here / "run.sqlite")
    connection.execute("update runs set root = replace(root, ?, ?)", (str(made), str(here)))
    connection.commit()
    connection.close()
    return here


def dump(database: Path) -> list[str]:
    """Return everything that a database holds as SQL, but for the time at which it was written."""
    connection = sqlite3.connect(database)
    try:
        return [TIME.sub("", statement) for statement in connection.iterdump()]
    finally:
        connection.close()


def rows(database: Path, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    connection = sqlite3.connect(database)
    try:
        return connection.execute(sql, parameters).fetchall()
    finally:
        connection.close()


def value(database: Path, sql: str, parameters: tuple[Any, ...] = ()) -> Any:
    """Return the only value of a query."""
    [(only,)] = rows(database, sql, parameters)
    return only


# What each migration from the second on has brought into an index, and how that is taken out again.
TAKEN_OUT = {
    "m002_tools": """
        drop view tool_use;
        drop index trajectories_tools;
        alter table trajectories drop column tools;
    """,
    "m003_rewarded": """
        drop view prompt_pass_rates;
        alter table prompt_groups drop column rewarded;
        create view prompt_pass_rates as select 1 as run_id;
    """,
    "m004_run_problems": "drop view run_problems;",
    "m005_rewarded_steps": "alter table steps drop column rewarded;",
    "m006_unrecorded": """
        update steps set truncated = ifnull(truncated, 0), errors = ifnull(errors, 0);
        update trajectories set tool_calls = ifnull(tool_calls, 0);
        delete from step_values where name = 'tool_calls';
        insert into step_values (run_id, step, split, env, name, trajectories, total)
        select run_id, step, split, env, 'tool_calls', count(*), sum(tool_calls)
        from trajectories group by run_id, step, split, env;
        pragma writable_schema = on;
        update sqlite_master set sql = replace(sql, 'tool_calls integer', 'tool_calls integer not null')
        where name = 'trajectories';
        update sqlite_master set sql = replace(sql, 'truncated integer', 'truncated integer not null default 0')
        where name = 'steps';
        update sqlite_master set sql = replace(sql, 'errors integer', 'errors integer not null default 0')
        where name = 'steps';
        pragma writable_schema = reset;
    """,
    "m007_advantages": "drop view advantages;",
}


def made_before(migration: str, database: Path) -> None:
    """Make an index what it was before this migration and those that came after it."""
    names = list(TAKEN_OUT)
    kept = names.index(migration)
    connection = sqlite3.connect(database)
    for name in reversed(names[kept:]):
        if name == "m005_rewarded_steps":
            without_rewarded_in_views(connection)
        connection.executescript(TAKEN_OUT[name])
        connection.execute("delete from _sqlite_migrations where name = ?", (name,))
    connection.execute(f"pragma user_version = {kept + 1}")
    connection.commit()
    connection.close()


def without_rewarded_in_views(connection: sqlite3.Connection) -> None:
    """Make the views what they were before they had that column."""
    for view in ("step_summary", "prompt_pass_rates"):
        [(made,)] = connection.execute("select sql from sqlite_master where name = ?", (view,))
        connection.execute(f"drop view {view}")
        connection.execute(made.replace("    cast(sum(g.rewarded) as integer) as rewarded,\n", ""))


def later(path: Path) -> None:
    """Move a file's time on, as writing to it later would, whatever the clock's resolution."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))
