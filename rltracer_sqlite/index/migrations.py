"""The history of the schema, read from top to bottom."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from .columns import add_built_in
from .schema import INDEXES, TABLES
from .views import VIEWS

if TYPE_CHECKING:
    from sqlite_utils import Database

SET = "rltracer"
# The table in which sqlite-utils keeps what it has applied.
APPLIED = """
create table "_sqlite_migrations" ("id" integer primary key, "migration_set" text, "name" text, "applied_at" text);
create unique index "idx__sqlite_migrations_migration_set_name" on "_sqlite_migrations" ("migration_set", "name");
"""


def m001_initial(connection: sqlite3.Connection) -> None:
    for statement in statements(TABLES + INDEXES + VIEWS):
        connection.execute(statement)
    add_built_in(connection)


def m002_tools(connection: sqlite3.Connection) -> None:
    """Add the names of the tools that are called; the files of trajectories with calls are read again for them.

    An index of the same version may also be from before the names of sealed files: those are found by looking there.
    """
    if not _has(connection, "shards", "file"):
        connection.execute("alter table shards add column file text not null default ''")
        connection.execute("update shards set file = path")
    if _has(connection, "trajectories", "tools"):
        return  # a new index has them from the start
    connection.execute("alter table trajectories add column tools text")
    _make(connection, "create index trajectories_tools ", "create view tool_use ")
    # An unknown time and no hash stand for a file that is to be read from its start.
    connection.execute(
        """
        update shards set mtime_ns = 0, head_hash = null
        where id in (select shard_id from trajectories where tool_calls > 0)
        """
    )


def m003_rewarded(connection: sqlite3.Connection) -> None:
    """Add how many trajectories of a group have a reward, from the rows, and with it the mean reward of a prompt."""
    if _has(connection, "prompt_groups", "rewarded"):
        return  # a new index has it from the start
    connection.execute("alter table prompt_groups add column rewarded integer not null default 0")
    connection.execute(
        """
        update prompt_groups set rewarded = counted.rewarded from (
            select prompt_group_id, count(reward) as rewarded from trajectories group by prompt_group_id
        ) counted where counted.prompt_group_id = prompt_groups.id
        """
    )
    connection.execute("drop view if exists prompt_pass_rates")
    _make(connection, "create view prompt_pass_rates ")


def m004_run_problems(connection: sqlite3.Connection) -> None:
    """Add the view of the problems with their runs."""
    if not connection.execute("select 1 from sqlite_master where name = 'run_problems'").fetchone():
        _make(connection, "create view run_problems ")


def m005_rewarded_steps(connection: sqlite3.Connection) -> None:
    """Add how many trajectories every other mean reward is over: of a step, of its environments and of a prompt."""
    if _has(connection, "steps", "rewarded"):
        return  # a new index has it from the start
    connection.execute("alter table steps add column rewarded integer not null default 0")
    connection.execute(
        """
        update steps set rewarded = counted.rewarded from (
            select run_id, step, split, sum(rewarded) as rewarded from prompt_groups group by run_id, step, split
        ) counted
        where counted.run_id = steps.run_id and counted.step is steps.step and counted.split is steps.split
        """
    )
    for view in ("prompt_pass_rates", "step_summary"):
        connection.execute(f"drop view if exists {view}")
        _make(connection, f"create view {view} ")


def _has(connection: sqlite3.Connection, table: str, column: str) -> bool:
    return any(row[1] == column for row in connection.execute(f"pragma table_xinfo({table})"))


def _make(connection: sqlite3.Connection, *beginnings: str) -> None:
    """Make the indexes and views whose statements begin so, as a new index has them."""
    for statement in statements(INDEXES + VIEWS):
        if statement.startswith(beginnings):
            connection.execute(statement)


def m006_unrecorded(connection: sqlite3.Connection) -> None:
    """Let counts be null where nothing records what they count: as the sums behind curves know, and the kinds of texts.

    What reads a file leaves them null from now on; that a row has an error column with nothing in it, or that a trace
    does not say why it stopped, is seen when its file is read next.
    """
    _let_be_null(connection, "steps", ("truncated", "errors"))
    _let_be_null(connection, "trajectories", ("tool_calls",))
    if not connection.execute("select 1 from trajectories limit 1").fetchone():
        return
    connection.execute(
        """
        update trajectories set tool_calls = null
        where tool_calls = 0 and content_kind in ('prompt_completion', 'token_ids')
        """
    )
    connection.execute("delete from step_values where name = 'tool_calls'")
    connection.execute(
        """
        insert into step_values (run_id, step, split, env, name, trajectories, total)
        select run_id, step, split, env, 'tool_calls', count(tool_calls), sum(tool_calls)
        from trajectories group by run_id, step, split, env having count(tool_calls) > 0
        """
    )
    for column, name in (("truncated", "truncated"), ("errors", "error")):
        connection.execute(
            f"""
            update steps set {column} = (
                select cast(sum(total) as integer) from step_values v
                where v.run_id = steps.run_id and v.step is steps.step and v.split is steps.split and v.name = ?
            )
            """,
            (name,),
        )


def _let_be_null(connection: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> None:
    """Take `not null` and a default of 0 from columns, as https://sqlite.org/lang_altertable.html#otheralter has it.

    A column that is dropped and made anew would take views of somebody's own with it.
    """
    [(made,)] = connection.execute("select sql from sqlite_master where type = 'table' and name = ?", (table,))
    names = "|".join(columns)
    changed = re.sub(rf"\b({names}) integer not null(?: default 0)?", r"\1 integer", made)
    if changed == made:
        return  # a new index has it so from the start
    [(version,)] = connection.execute("pragma schema_version")
    connection.execute("pragma writable_schema = on")
    try:
        connection.execute("update sqlite_master set sql = ? where type = 'table' and name = ?", (changed, table))
        connection.execute(f"pragma schema_version = {version + 1}")
    finally:
        connection.execute("pragma writable_schema = reset")


def m007_advantages(connection: sqlite3.Connection) -> None:
    """Add the view of the recorded and the derived advantages."""
    if not connection.execute("select 1 from sqlite_master where name = 'advantages'").fetchone():
        _make(connection, "create view advantages ")


HISTORY = [
    m001_initial, m002_tools, m003_rewarded, m004_run_problems, m005_rewarded_steps, m006_unrecorded, m007_advantages,
]  # fmt: skip


def create(connection: sqlite3.Connection) -> None:
    """Make the schema of a new index, the same as `migrate` makes, inside the caller's transaction.

    Importing sqlite-utils takes longer than reading a small run, so that only an old index pays for it.
    """
    for statement in statements(APPLIED):
        connection.execute(statement)
    for change in HISTORY:
        change(connection)
        connection.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at) values (?, ?, ?)",
            (SET, change.__name__, str(datetime.now(timezone.utc))),
        )


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema of an index to this version."""
    from sqlite_utils import Database, Migrations

    migrations = Migrations(SET)
    for change in HISTORY:

        def apply(db: Database, change: Callable[[sqlite3.Connection], None] = change) -> None:
            change(db.conn)

        migrations(name=change.__name__)(apply)
    migrations.apply(Database(connection))


def statements(script: str) -> list[str]:
    """Split a script into its statements, without the comment that stands before each."""
    found, pending = [], ""
    for line in script.splitlines(keepends=True):
        if not pending and (line.startswith("--") or not line.strip()):
            continue
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found
