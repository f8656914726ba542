"""What one visitor may cost the others: how many pages are made at once, and how long the index is asked for one."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from datasette.utils.asgi import Base400

if TYPE_CHECKING:
    from datasette.app import Datasette

STEPS_BETWEEN = 100_000  # of SQLite's virtual machine
MOST_STEPS = 300_000_000  # for all questions of one reading: some seconds
RETRY_SECONDS = 20

Read = TypeVar("Read")


class Busy(Base400):
    """There is no room for another request of this kind now."""

    status = 503


class TookTooLong(Base400):
    """Questions to an index that were stopped."""

    status = 503


class Gate:
    """Lets `most` pass at once and has `waiting` more of them wait; those behind them are turned away."""

    def __init__(self, most: int, waiting: int, words: str) -> None:
        self.places, self.waiting, self.words, self.line = asyncio.Semaphore(most), waiting, words, 0

    @asynccontextmanager
    async def passed(self) -> AsyncIterator[None]:
        """Be inside for a while. Raises Busy."""
        await self.enter()
        try:
            yield
        finally:
            self.leave()

    async def enter(self) -> None:
        """Wait for a place and take it; whoever does so has to leave. Raises Busy."""
        if self.places.locked() and self.line >= self.waiting:
            raise Busy(f"{self.words} Try again in {RETRY_SECONDS} seconds.")
        self.line += 1
        try:
            await self.places.acquire()
        finally:
            self.line -= 1

    def leave(self) -> None:
        """Give the place to somebody else."""
        self.places.release()


@dataclass
class Gates:
    """The gates of one server."""

    pages: Gate
    records: Gate
    downloads: Gate


_gates: WeakKeyDictionary[Datasette, Gates] = WeakKeyDictionary()


def gates(datasette: Datasette) -> Gates:
    """Return the gates of a server."""
    if datasette not in _gates:
        _gates[datasette] = Gates(
            Gate(16, 200, "Too many pages are being made at once."),
            Gate(1, 8, "Too many large records are being read at once."),
            Gate(4, 0, "Four downloads are running already, which is as many as there may be at once."),
        )
    return _gates[datasette]


async def ask(datasette: Datasette, database: str, work: Callable[[sqlite3.Connection], Read]) -> Read:
    """Return what `work` makes of a connection to a database, in a thread. Raises TookTooLong.

    What is counted is the work of SQLite alone: `work` may read files meanwhile. Datasette's own time limit is for
    single questions, and for those that it asks itself.
    """

    def counted(connection: sqlite3.Connection) -> Read:
        left = MOST_STEPS

        def step() -> bool:
            nonlocal left
            left -= STEPS_BETWEEN
            return left < 0

        connection.set_progress_handler(step, STEPS_BETWEEN)
        try:
            return work(connection)
        except sqlite3.OperationalError:
            if left < 0:
                raise TookTooLong("The questions to this index took longer than this server allows.") from None
            raise
        finally:
            connection.set_progress_handler(None, STEPS_BETWEEN)

    return await datasette.databases[database].execute_fn(counted)
