"""Which of the attached databases are indexes of rollouts, and what Datasette says about their tables."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from datasette.utils import escape_fts

from rltracer_sqlite.index.database import APPLICATION_ID, is_index
from rltracer_sqlite.metadata import table_metadata
from rltracer_sqlite.search.characters import apart
from rltracer_sqlite.search.tables import DIGESTS, SEARCH_SETTINGS, SHARDS, has_text

from . import compat
from .bounds import TookTooLong, ask
from .text import plain

if TYPE_CHECKING:
    from datasette.app import Datasette

MOST_FIELDS = 500  # recorded fields that get a column description

# Per Datasette instance: the metadata of the tables of each index, by the database's name.
_described: WeakKeyDictionary[Datasette, dict[str, dict[str, dict[str, Any]]]] = WeakKeyDictionary()


async def find_indexes(datasette: Datasette) -> None:
    """Recognise the indexes among the attached databases and describe their tables."""
    for name in list(datasette.databases):
        await is_rollout_index(datasette, name)


async def is_rollout_index(datasette: Datasette, database: str) -> bool:
    """Say whether a database is an index; one that is met for the first time gets its descriptions."""
    known = _described.setdefault(datasette, {})
    if database not in known:
        try:
            fields = await ask(datasette, database, _recorded_fields)
        except (sqlite3.Error, TookTooLong):
            return False  # a damaged or vanished file is Datasette's to report, when somebody asks for it
        if fields is None:
            return False
        known[database] = _tables(fields)
        if await ask(datasette, database, has_text):
            known[database]["trajectories"].update(SEARCH_SETTINGS)
        await compat.describe_tables(datasette, database, known[database])
    return True


async def offer_search(datasette: Datasette, database: str) -> None:
    """Let the table page of an index search its full text, also where that was made after the index was met."""
    table = _described[datasette][database]["trajectories"]
    if not SEARCH_SETTINGS.items() <= table.items():
        table.update(SEARCH_SETTINGS)
        await compat.describe_tables(datasette, database, {"trajectories": dict(SEARCH_SETTINGS)})


def file_name(datasette: Datasette, database: str) -> str:
    """Return the name of an index's file, without the folder, which is nobody's business."""
    path = datasette.databases[database].path
    return str(path).replace("\\", "/").rsplit("/", 1)[-1] if path else database


def is_known_index(datasette: Datasette, database: str | None) -> bool:
    """Say whether a database has been met and is an index, without asking it."""
    return database in _described.get(datasette, {})


def described_metadata(datasette: Datasette, key: str | None, database: str | None) -> dict[str, Any]:
    """Return the metadata of the indexes met so far, as Datasette 0.65 asks for it."""
    return compat.offered_metadata(datasette, key, database, _described.get(datasette, {}))


def prepare_index(connection: sqlite3.Connection) -> None:
    """Keep the views of an index from functions with side effects, which other plugins may have registered.

    What is searched for on a table's own page becomes words as in the full text, or as in another table of words.
    """
    try:
        if connection.execute("pragma application_id").fetchone()[0] == APPLICATION_ID:
            connection.execute("pragma trusted_schema = off")
            connection.create_function("escape_fts", 1, _escape_fts)
    except sqlite3.Error:
        return  # as in `is_rollout_index`


def _escape_fts(text: str) -> str:
    """Return a FTS5 query for a text, as Datasette's function of this name does, and as the full text has its words."""
    query = escape_fts(text)
    as_words = apart(query)
    return query if as_words == query else f"({query}) OR ({as_words})"


def _recorded_fields(connection: sqlite3.Connection) -> list[tuple[str, str]] | None:
    """Return (column, path) of the columns made for recorded values, or None where the database is no index."""
    if not is_index(connection):
        return None
    found = connection.execute(
        """
        select column_name, substr(path, 1, 300) from fields where column_name is not null limit ?
        """,
        (MOST_FIELDS,),
    )
    return [(row[0], row[1]) for row in found]


def _tables(fields: list[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    tables = table_metadata()
    columns = tables["trajectories"]["columns"]
    for column, path in fields:
        columns.setdefault(column, f"{plain(path)}, as recorded")
    return {**tables, **{name: {"hidden": True} for name in ("_sqlite_migrations", "sqlite_sequence", DIGESTS, SHARDS)}}
