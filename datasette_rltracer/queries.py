"""The lists of a page: each is the answer to one SQL query, and carries the address that shows that query."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from datasette.database import QueryInterrupted
from datasette.utils.asgi import BadRequest, Request

from . import compat

if TYPE_CHECKING:
    from datasette.app import Datasette

    from rltracer_sqlite import charts

PARAMETER = re.compile(r":(\w+)")
# What SQLite says of a filter that goes by the content of a column, and of a pattern that it does not take.
OF_A_FILTER = ("malformed JSON", "LIKE or GLOB pattern too complex")

LONGEST_TEXT = 4_000  # characters
AS_JSON = {
    "curve",
    "splits",
    "ranges",
    "error_steps",
    "found_steps",
    "files_with_problems",
    "steps_amiss",
}  # made by our own queries, of whole lists


@dataclass(frozen=True)
class Query:
    """A query over an index. Its parameters stand in an address as text, so each is only compared with a column."""

    sql: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The rows that a query gave, where a person may see the query, and whether it was stopped for taking too long."""

    rows: list[dict[str, Any]]
    sql_url: str | None = None
    interrupted: bool = False

    def first(self, **missing: Any) -> dict[str, Any]:
        """Return the first row, or what is `missing` where there is none."""
        return self.rows[0] if self.rows else missing


async def answers(datasette: Datasette, request: Request, database: str, *queries: Query) -> list[Answer]:
    """Return the answers to queries, in their order. Raises BadRequest where a filter in one cannot be used."""
    links = await compat.can_execute_sql(datasette, request.actor, database)
    return list(await asyncio.gather(*(_answer(datasette, database, query, links) for query in queries)))


async def _answer(datasette: Datasette, database: str, query: Query, links: bool) -> Answer:
    address = sql_url(datasette, database, query) if links else None
    try:
        found = await datasette.databases[database].execute(query.sql, query.parameters, log_sql_errors=False)
    except QueryInterrupted:
        return Answer([], address, True)
    except (sqlite3.InterfaceError, sqlite3.ProgrammingError, OverflowError) as error:
        # Parameters come from the address: a number too large for SQLite, or a list where a value belongs.
        raise BadRequest(f"A filter in this address cannot be used: {error}.") from None
    except sqlite3.OperationalError as error:
        if str(error) not in OF_A_FILTER:
            raise
        raise BadRequest(f"A filter in this address cannot be used: {error}.") from None
    return Answer([bounded(row) for row in found.rows], address)


def bounded(row: Mapping[str, Any] | sqlite3.Row) -> dict[str, Any]:
    """Return a row without the ends of texts that are longer than any that an index keeps: a page repeats them."""
    return {
        name: value[:LONGEST_TEXT]
        if isinstance(value, str) and len(value) > LONGEST_TEXT and name not in AS_JSON
        else value
        for name, value in dict(row).items()
    }


def sql_url(datasette: Datasette, database: str, query: Query | charts.Query) -> str:
    """Return the address of Datasette's page of a query, of a page or of a chart, and its parameters."""
    named = set(PARAMETER.findall(query.sql))
    used = {name: value for name, value in query.parameters.items() if name in named}
    return f"{datasette.urls.database(database)}?{urlencode({'sql': dedent(query.sql).strip(), **used})}"
