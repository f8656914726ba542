"""Whether a database that calls itself an index is built as one, and whether its values are of the kinds it promises.

A file that somebody else made can have a view without an end, a trigger or a computed column where an index has a
plain table, and text where its tables promise a number.
"""

from __future__ import annotations

import sqlite3
from functools import cache

from .schema import TABLES

PLAIN = 0  # how `pragma table_xinfo` marks a column that is not computed
STRICT = ("table", 1)  # how `pragma table_list` describes a plain table that checks the types of its values


def odd_structure(connection: sqlite3.Connection, schema: str = "main") -> str | None:
    """Return what is not as in an index, such as "trajectories is no plain table", or None.

    `schema` is the name under which the database is attached. Tables, views and columns of one's own do no harm;
    nothing of ours reads them. What is missing is left to SQLite to report.
    """
    expected = _columns()
    kinds = dict.fromkeys(expected, STRICT)
    if not all(_checks_types(connection, schema, table) for table in expected):
        # This prepares every view, and takes three times as long as all the rest.
        kinds = {row[1].lower(): (row[2], row[5]) for row in connection.execute(f"pragma {schema}.table_list")}
    for table, columns in expected.items():
        if table not in kinds:
            continue
        if kinds[table] != STRICT:
            return f"{table} is no plain table"
        for _, name, kind, _, _, _, hidden in connection.execute(f"pragma {schema}.table_xinfo({table})"):
            if columns.get(name, (kind.lower(), PLAIN)) != (kind.lower(), hidden):
                return f"{table}.{name} is no column as an index has it"
    triggers = connection.execute(f"select name, tbl_name from {schema}.sqlite_master where type = 'trigger' limit 100")
    return next((f"{table} has a trigger" for _, table in triggers if table.lower() in expected), None)


def _checks_types(connection: sqlite3.Connection, schema: str, table: str) -> bool:
    """Say whether SQLite would check the types of a new row of a table, which it does for plain strict ones only."""
    try:
        program = connection.execute(f"explain insert into {schema}.{table} default values").fetchall()
    except sqlite3.OperationalError:  # there is none of this name, or nothing can be written to it
        return False
    return any((row[1], row[5]) == ("TypeCheck", table) for row in program)


def missing_structure(connection: sqlite3.Connection) -> str | None:
    """Return what an index has and this database has not, such as "there is no table steps", or None."""
    for table, columns in _columns().items():
        found = {row[1] for row in connection.execute(f"pragma main.table_xinfo({table})")}
        if not found:
            return f"there is no table {table}"
        if lost := sorted(set(columns) - found):
            return f"there is no column {table}.{lost[0]}"
    return None


def odd_values(connection: sqlite3.Connection) -> str | None:
    """Return what SQLite finds wrong with the values of a database, in a few words, or None. Reads all of it."""
    try:
        found = connection.execute("pragma quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        return str(error)
    return None if found == "ok" else str(found).split("\n")[0][:200]


@cache
def _columns() -> dict[str, dict[str, tuple[str, int]]]:
    """Return the columns of each table of a new index: {table: {column: (type, PLAIN or another mark)}}."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    tables = [row[0] for row in connection.execute("select name from sqlite_master where sql like '%strict'")]
    found = {
        table: {row[1]: (row[2].lower(), row[6]) for row in connection.execute(f"pragma table_xinfo({table})")}
        for table in tables
    }
    connection.close()
    return found
