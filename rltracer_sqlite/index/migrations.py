"""The history of the schema, read from top to bottom."""

from __future__ import annotations

import sqlite3

from sqlite_utils import Database, Migrations

from .columns import add_built_in
from .schema import INDEXES, TABLES
from .views import VIEWS

migrations = Migrations("rltracer")


@migrations()
def m001_initial(db: Database) -> None:
    for statement in statements(TABLES + INDEXES + VIEWS):
        db.execute(statement)
    add_built_in(db.conn)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema of an index to this version."""
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
