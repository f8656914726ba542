"""The tables that a selection is made in: a temporary database beside the indexes, which are only read.

It lies in a file that SQLite removes by itself, so that a selection among a million trajectories needs little memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..index.soundness import odd_structure
from .errors import ExportError
from .runs import OpenRun, Progress

CACHE_KIB = 32_000
SOURCE_CACHE_KIB = 16_000
TOLD_EVERY = 500_000  # steps of SQLite's virtual machine, some hundredths of a second
# Tables of an index that an export may read. One that a selection happens not to need must not be missing in silence.
NEEDED = ("runs", "shards", "prompts", "prompt_groups", "trajectories", "fields")

TABLES = """
-- A prompt within a run and window, split and env: what a pass rate is of.
create table groups (
    number integer primary key, -- in any run
    run integer, window integer, prompt_id integer, split text, env text,
    trajectories integer, scored integer, successes integer,
    fits integer -- 1: its pass rate is within the asked bounds
);
create unique index groups_key on groups(run, prompt_id, window, split, env);

-- The prompt groups of the index that belong to a group, and the unit that a quota is for, by the number of its first
-- group: the group, or for RL prompts the prompt whatever its split and env.
create table members (
    run integer, prompt_group_id integer, step integer, grp integer, unit integer,
    primary key (run, prompt_group_id)
) without rowid;

-- Rows that somebody has chosen already.
create table chosen (run integer, id integer, primary key (run, id)) without rowid;

-- Ids that somebody has asked for, and the trajectories that they are of. Ids of one list may be those of several runs.
create table asked (
    place integer primary key, list integer, given text, number integer, is_found integer not null default 0
);
create unique index asked_key on asked(list, given);
create table named (run integer, id integer, asked integer, primary key (run, id, asked)) without rowid;

-- Trajectories that reading their record has ruled out, by the stage of the funnel that does so.
create table unfit (run integer, stage text, id integer, reason text, primary key (run, stage, id)) without rowid;

-- How many trajectories fail a stage and none before it.
create table stages (run integer, stage integer, trajectories integer);

-- How many of those that fail no stage have how many tool calls.
create table calls (run integer, tool_calls integer, trajectories integer);

-- How many pairs there are whatever the outcome of the worse one, counted where it matters.
create table pairs (run integer, pairs integer);

-- What the quotas allow: a trajectory, or in preference mode the better and the worse one of a pair.
create table picks (
    pick integer primary key, run integer, unit integer, id integer, other integer,
    slot integer, -- its place within its unit, counted from 1
    layer,        -- orders the picks of a slot
    draw blob,    -- orders them where that is equal
    prompt blob   -- the same for the same prompt in any run
);

-- What the rows that were made hold, provenance and raw trace aside, as Python's hash of it.
create table contents (hash integer primary key);

-- The same of what was picked, before anything is written: a row per row that it gives.
create table said (run integer, id integer, other integer, hash integer);
create index said_key on said(run, id);

-- Picks that are to be read for that, those that only say what others do, and the units of these.
create table unread (pick integer primary key);
create table repeated (pick integer primary key);
create table repeating (unit integer primary key);
"""


class Scratch:
    """A temporary database that can read one index at a time, under the name `source`.

    `progress` is told now and then while a long statement runs, and ends it by raising; so does Ctrl-C.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress
        self.stopped: BaseException | None = None
        # A browser's export is advanced by whichever thread is free.
        self.connection = sqlite3.connect("", uri=True, isolation_level=None, check_same_thread=False)
        self.connection.execute("pragma trusted_schema = off")
        self.connection.execute("pragma journal_mode = off")
        self.connection.execute(f"pragma cache_size = -{CACHE_KIB}")
        self.connection.executescript(TABLES)
        self.connection.set_progress_handler(self._tell, TOLD_EVERY)
        self.attached: OpenRun | None = None

    def attach(self, run: OpenRun) -> sqlite3.Connection:
        """Make the index of a run readable as `source`, and return the connection."""
        if self.attached is None or self.attached.index != run.index:
            if self.attached is not None:
                self.connection.execute("detach source")
                self.attached = None
            self.connection.execute("attach ? as source", (f"{run.index.absolute().as_uri()}?mode=ro",))
            self.connection.execute(f"pragma source.cache_size = -{SOURCE_CACHE_KIB}")
            # It was looked at when its runs were listed, and may be another file by now.
            if odd := odd_structure(self.connection, "source") or _missing(self.connection):
                raise sqlite3.DatabaseError(odd)
        self.attached = run
        return self.connection

    def _tell(self) -> int:
        try:
            if self.progress is not None:
                self.progress("Selecting", 0, 0)
        except BaseException as error:  # SQLite ends the statement, and `index_errors` raises this one
            self.stopped = error
            return 1
        return 0

    @contextmanager
    def index_errors(self, run: OpenRun) -> Iterator[None]:
        """Turn what SQLite says of a damaged or strange index into a sentence; raise what has stopped a statement."""
        try:
            with index_errors(run):
                yield
        except sqlite3.OperationalError:
            if self.stopped is None:
                raise
            stopped, self.stopped = self.stopped, None
            raise stopped from None

    def insert(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Insert many rows, which may themselves come from a question to this database."""
        # One transaction for all of them; `source` can only be changed outside of one.
        self.connection.execute("begin")
        try:
            self.connection.executemany(sql, rows)
        finally:
            self.connection.execute("commit")

    def copied(
        self, table: str, columns: Sequence[str], question: str, run: OpenRun, parameters: dict[str, Any]
    ) -> Iterator[tuple[Any, ...]]:
        """Return the answer to a question to an index, in its order, from a copy of it.

        Reading thousands of records takes a while, and an index that is being read from cannot be written to.
        """
        connection = self.attach(run)
        connection.execute(f"drop table if exists {table}")
        # Columns without a type keep every value as it is; "as select" would turn texts into numbers.
        connection.execute(f"create table {table} ({', '.join(columns)})")
        connection.execute(f"insert into {table} {question}", parameters)
        return connection.execute(f"select * from {table} order by rowid")

    def count(self, table: str) -> int:
        """Return the number of rows of one of the tables."""
        return int(self.connection.execute(f"select count(*) from {table}").fetchone()[0])

    def take_unfit(self, other: Scratch) -> None:
        """Know of the trajectories that are ruled out in another selection of the same runs."""
        known = other.connection.execute("select run, stage, id, reason from unfit")
        self.insert("insert into unfit (run, stage, id, reason) values (?, ?, ?, ?)", known)

    def is_new(self, content: bytes) -> bool:
        """Note the content of a row, and say whether no row before had the same."""
        # 64 bits of SipHash: of a million different rows two are taken for the same once in forty million exports.
        sql = "insert or ignore into contents (hash) values (?)"
        return self.connection.execute(sql, (hash(content),)).rowcount == 1

    def forget_contents(self) -> None:
        """Begin with rows anew."""
        self.connection.execute("delete from contents")

    def close(self) -> None:
        """Remove the tables."""
        self.connection.set_progress_handler(None, 0)
        self.connection.close()


def _missing(connection: sqlite3.Connection) -> str | None:
    names = {row[1] for row in connection.execute("pragma source.table_list")}
    return next((f"no such table: {name}" for name in NEEDED if name not in names), None)


@contextmanager
def index_errors(run: OpenRun) -> Iterator[None]:
    """Turn what SQLite says of a damaged or strange index, or of a full disk, into a sentence."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if "interrupted" in str(error):
            raise
        if "disk is full" in str(error):
            # An index that is only read needs no room; the tables of the selection do.
            raise ExportError(
                "The disk that holds temporary files is full; name another one in SQLITE_TMPDIR."
            ) from None
        raise ExportError(f"{run.index} cannot be read: {error}. Make it anew with rltracer-index --rebuild.") from None
