"""Indexing in tests: a run into a database, and short questions to it."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.index.refresh import Refreshed, refresh_run
from rltracer_sqlite.index.runs import ensure_run, set_success
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import Source

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


def without_rewarded_steps(database: Path) -> None:
    """Make an index what it was before it counted the trajectories of a step that have a reward."""
    connection = sqlite3.connect(database)
    for view in ("step_summary", "prompt_pass_rates"):
        [(made,)] = connection.execute("select sql from sqlite_master where name = ?", (view,))
        connection.execute(f"drop view {view}")
        connection.execute(made.replace("    cast(sum(g.rewarded) as integer) as rewarded,\n", ""))
    connection.executescript(
        """
        alter table steps drop column rewarded;
        delete from _sqlite_migrations where name = 'm005_rewarded_steps';
        pragma user_version = 4;
        """
    )
    connection.close()


def without_run_problems(database: Path) -> None:
    """Make an index what it was before it had the view of problems with their runs."""
    without_rewarded_steps(database)
    connection = sqlite3.connect(database)
    connection.executescript(
        """
        drop view run_problems;
        delete from _sqlite_migrations where name = 'm004_run_problems';
        pragma user_version = 3;
        """
    )
    connection.close()


def without_rewarded(database: Path) -> None:
    """Make an index what it was before it counted the trajectories of a group that have a reward."""
    without_run_problems(database)
    connection = sqlite3.connect(database)
    connection.executescript(
        """
        drop view prompt_pass_rates;
        alter table prompt_groups drop column rewarded;
        create view prompt_pass_rates as select 1 as run_id;
        delete from _sqlite_migrations where name = 'm003_rewarded';
        pragma user_version = 2;
        """
    )
    connection.close()


def without_tools(database: Path) -> None:
    """Make an index what it was before it had the names of tools."""
    without_rewarded(database)
    connection = sqlite3.connect(database)
    connection.executescript(
        """
        drop view tool_use;
        drop index trajectories_tools;
        alter table trajectories drop column tools;
        delete from _sqlite_migrations where name = 'm002_tools';
        pragma user_version = 1;
        """
    )
    connection.close()
