"""Rows of a table in a SQLite database, opened for reading only; a row is addressed by its rowid."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..absent import absent
from ..base import LocatorError, NotRollouts
from ..files import status_inside
from ..places import Root, base_folder
from ..remote import RemoteRoot
from .rows import Row

# Beside SQLite's own errors: names of columns that are no UTF-8, and sizes that no memory would hold.
DAMAGED = (sqlite3.Error, UnicodeDecodeError, MemoryError, OverflowError)


def sqlite_rows(root: Root, path: str, table: str | None) -> Iterator[tuple[int, Row]]:
    """Yield (rowid, row) of a table. Raises NotRollouts where there is no such table, LocatorError for a bad file."""
    with closing(connect(root, path)) as connection:
        try:
            name = _checked(connection, table)
            number = _row_number(connection, name)
            cursor = connection.execute(f"select {number}, * from {name} order by {number}")
            names = [column[0] for column in cursor.description][1:]
            last = -(2**63) - 1
            for rowid, *cells in cursor:
                if rowid <= last:  # one of the rows could not be found by its number
                    raise LocatorError(f"{path} is damaged: its rows are out of order after row {last}.")
                yield rowid, _row(names, cells)
                last = rowid
        except DAMAGED as error:
            raise LocatorError(f"{path} cannot be read: {str(error) or 'it claims impossible sizes'}.") from None


def load_sqlite_row(root: Root, path: str, table: str | None, rowid: int) -> Row:
    """Return one row by its rowid. Raises LocatorError."""
    with closing(connect(root, path)) as connection:
        try:
            name = _checked(connection, table)
            cursor = connection.execute(f"select * from {name} where {_row_number(connection, name)} = ?", (rowid,))
            cells = cursor.fetchone()
        except (*DAMAGED, NotRollouts) as error:
            raise LocatorError(f"{path} cannot be read: {str(error) or 'it claims impossible sizes'}.") from None
    if cells is None:
        raise LocatorError(f"{path} has no row {rowid}: it has changed since it was indexed. Index the run again.")
    return _row([column[0] for column in cursor.description], list(cells))


def connect(root: Root, path: str) -> sqlite3.Connection:
    """Return a connection to a database of a run, for reading only. Raises LocatorError."""
    if isinstance(root, RemoteRoot):
        raise LocatorError(f"{path} is a SQLite database, which is read on this machine only: copy it here.")
    before = _identity(root, path)
    file = (base_folder(root) / path).resolve()
    # A database that is being written to is read through its log; any other one without making a lock file beside it.
    live = file.with_name(file.name + "-wal").exists()
    try:
        connection = sqlite3.connect(f"file:{quote(str(file))}?mode=ro{'' if live else '&immutable=1'}", uri=True)
    except sqlite3.Error as error:
        raise LocatorError(f"{path} cannot be read: {error}.") from None
    # SQLite opens a file by its name: what has been put in its place meanwhile, such as a link, is not read.
    try:
        if _identity(root, path) != before:
            raise LocatorError(f"{path} was replaced while it was opened; try again.")
        connection.execute("pragma trusted_schema = off")
    except (LocatorError, *DAMAGED):
        connection.close()
        raise
    connection.text_factory = _text  # a text of another system may be no UTF-8
    return connection


def _identity(root: Path, path: str) -> tuple[int, int]:
    """Return which file a path means. Raises LocatorError for what leads out of the run's folder or is not there."""
    try:
        status = status_inside(root, path)
    except FileNotFoundError:
        raise absent(root, path) from None
    return status.st_dev, status.st_ino


def table_names(connection: sqlite3.Connection) -> list[str]:
    """Return the tables of a database. A view or a virtual table would be code of the file's author: not among them."""
    tables = connection.execute(
        """
        select name from sqlite_master
        where type = 'table' and sql like 'create table %' and name not like 'sqlite\\_%' escape '\\' order by name
        """
    )
    return [name for (name,) in tables if isinstance(name, str)]  # a damaged schema may hold anything


def _checked(connection: sqlite3.Connection, table: str | None) -> str:
    """Return a table's name, quoted. Raises NotRollouts where there is none of this name."""
    names = table_names(connection)
    if table not in names:
        held = ", ".join(names[:8]) or "no tables"
        asked = f"no table {table!r}" if table else "several possible tables: name one with files.table"
        raise NotRollouts(f"a SQLite database with {asked}; it holds {held}")
    return '"' + str(table).replace('"', '""') + '"'


def _row_number(connection: sqlite3.Connection, name: str) -> str:
    """Return what the number of a row is called: a column of the table may take one of the names away."""
    taken = {column[0].lower() for column in connection.execute(f"select * from {name} limit 0").description}
    if free := [alias for alias in ("rowid", "_rowid_", "oid") if alias not in taken]:
        return free[0]
    raise NotRollouts(f"a SQLite table {name} in which columns hide the numbers of its rows")


def _row(names: list[str], cells: list[Any]) -> Row:
    return Row(
        {name: _text(cell) if isinstance(cell, bytes) else cell for name, cell in zip(names, cells, strict=True)}
    )


def _text(cell: bytes) -> str:
    # Some writers store JSON text as a blob.
    return cell.decode("utf-8", "replace")
