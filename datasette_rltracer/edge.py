"""Around every page of ours: a place for it, headers, and a sentence for an index whose values are not what they say.

An index can be damaged, or come from somebody who made it to do harm: a table is not there, or promises numbers where a
page then finds a text. When a page fails, and only then, the file is checked: where something is missing or odd the
visitor is told so, and where nothing is the fault is ours and stays an error.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from datasette.database import QueryInterrupted
from datasette.utils import tilde_decode
from datasette.utils.asgi import Base400, Request, Response

from rltracer_sqlite.index.database import SCHEMA_VERSION
from rltracer_sqlite.index.soundness import missing_structure, odd_values

from .bounds import RETRY_SECONDS, Busy, TookTooLong, ask, gates

if TYPE_CHECKING:
    from datasette.app import Datasette

# Scripts and styles are left to Datasette, whose own pages have them inline, and to the plugins beside this one.
POLICY = (
    "object-src 'none'; frame-src 'none'; media-src 'none'; img-src 'self' data: blob:; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'self'"
)
HEADERS = {"content-security-policy": POLICY, "referrer-policy": "same-origin", "x-content-type-options": "nosniff"}
FAULTS = (sqlite3.Error, TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)

EARLIER = "This index was made by an earlier version"
EXTREMES = ("integer overflow", "string or blob too big")  # what SQLite says of values that no sum or row can hold

LONGEST_QUERY = 16_000  # characters after the question mark, which pages repeat

View = Callable[["Datasette", Request], Awaitable[Response]]
Route = tuple[str, View]  # the pattern of an address, and the page there

FileStates = list[tuple[int, int, int]]  # inode, bytes and the time of writing

# Per Datasette instance: what was found in a database, by its name, and of which state of its files that is true.
_checked: WeakKeyDictionary[Datasette, dict[str, tuple[FileStates, str | None]]] = WeakKeyDictionary()


class TooLong(Base400):
    """An address that is longer than any page of ours needs it to be."""

    status = 414


class Damaged(Base400):
    """An index whose values are not of the kinds that its tables promise."""

    status = 409


def guarded(routes: list[Route]) -> list[Route]:
    """Return routes whose pages are made within the bounds of this server and carry its headers."""
    return [(address, _guarded(view)) for address, view in routes]


def _guarded(view: View) -> View:
    @wraps(view)
    async def page(datasette: Datasette, request: Request) -> Response:
        if len(request.query_string) > LONGEST_QUERY:
            raise TooLong(f"This address is too long; a page takes {LONGEST_QUERY:,} characters of filters.")
        database = tilde_decode(request.url_vars.get("database", ""))
        try:
            async with gates(datasette).pages.passed():
                answer = await within(datasette, database, view(datasette, request))
        except Busy as error:
            return come_again(error)
        answer.headers = {**HEADERS, **(answer.headers or {})}
        return answer

    return page


async def within(datasette: Datasette, database: str, answer: Awaitable[Response]) -> Response:
    """Return an answer. Raises Damaged where it fails because of the values of a database, TookTooLong or Busy."""
    try:
        return await answer
    except QueryInterrupted:
        raise TookTooLong("A query took longer than this server allows.") from None
    except FAULTS as error:
        odd = str(error) if str(error) in EXTREMES else await _odd(datasette, database)
        if odd is None:
            raise
        if odd.startswith(EARLIER):
            raise Damaged(odd) from error
        raise Damaged(f"This index is damaged: {odd}. Make it again with rltracer-index --rebuild.") from error


def come_again(error: Busy) -> Response:
    """Return the answer to a visitor who has to come again."""
    headers = {"retry-after": str(RETRY_SECONDS), "x-content-type-options": "nosniff"}
    return Response.text(f"{error}\n", status=error.status, headers=headers)


async def _odd(datasette: Datasette, name: str) -> str | None:
    """Return what is wrong with a database; each state of it is looked through once, since that reads all of it."""
    known = _checked.setdefault(datasette, {})
    database = next((key for key, one in datasette.databases.items() if name in (key, one.route)), None)
    if database is None:
        return None
    state = _state(datasette.databases[database].path)
    if database not in known or known[database][0] != state:
        try:
            known[database] = (state, await ask(datasette, database, _wrong))
        except sqlite3.Error as error:  # a file that is there no more is not even opened
            return str(error)
    return known[database][1]


def _wrong(connection: sqlite3.Connection) -> str | None:
    lost = missing_structure(connection)
    if lost and connection.execute("pragma user_version").fetchone()[0] < SCHEMA_VERSION:
        return f"{EARLIER}: {lost}. Whoever keeps it brings it up to date by indexing its run again."
    return lost or odd_values(connection)


def _state(path: str | None) -> FileStates:
    """Return what changes with the files of a database: which they are, how large, and when they were written."""
    found = []
    for file in (path, f"{path}-wal") if path else ():
        with suppress(OSError):
            stat = os.stat(file)
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return found
