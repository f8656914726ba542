"""Opening an index: making a new one, refusing what is none, and never reading more than it must."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from .soundness import odd_structure

APPLICATION_ID = 0x524C5472  # "RLTr"
SCHEMA_VERSION = 7
REBUILDING = ".rebuilding"  # behind the name of an index: the file that takes its place when it is complete
BUSY_SECONDS = 30.0
LARGEST_LOG = 1 << 26  # bytes
LARGEST_VALUE = 64 << 20  # bytes of one value or row of an index; ours have some hundred
STEPS_BETWEEN_SIGNALS = 1_000_000  # of SQLite's virtual machine: about ten milliseconds


class IndexFileError(ValueError):
    """A file that cannot serve as an index, in a sentence that says what to do."""


def open_index(path: Path) -> sqlite3.Connection:
    """Open an existing index for reading. Raises IndexFileError."""
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:
        raise IndexFileError(f"{path} cannot be opened: {error.strerror}.") from None
    if is_folder:
        raise IndexFileError(f"{path} is a folder, not an index. Make one of it with: rltracer-index run.sqlite {path}")
    if not is_file:
        from ..sources.absent import dangling

        if (target := dangling(path)) is not None:
            raise IndexFileError(f"{path} is a link to {target}, where there is nothing.")
        raise IndexFileError(f"The index {path} does not exist. Make it with: rltracer-index {path} RUN")
    connection = _connect(path, read_only=True)
    _check(connection, path)
    return connection


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open an index to add to it, making or upgrading it first. Raises IndexFileError."""
    if path.is_dir() or not path.parent.is_dir():
        raise IndexFileError(
            f"{path} cannot be written: " + ("it is a folder." if path.is_dir() else "no such folder.")
        )
    existed = path.exists()
    fresh = not existed or path.stat().st_size == 0
    if not existed:
        # Of one that was removed while it was in use: who reads the new one at once would take them for its own.
        _remove_journals(path)
    connection = _connect(path, read_only=False)
    try:
        if not fresh:
            _check(connection, path, upgrading=True)
        if not connection.execute("select count(*) from sqlite_master").fetchone()[0]:
            _create(connection)
        elif _version(connection) < SCHEMA_VERSION:
            _migrate(connection)
        connection.execute("select 1 from runs limit 1").fetchall()
    except BaseException as error:
        connection.close()
        if not isinstance(error, sqlite3.Error) or str(error) == "interrupted":  # by a signal
            if not existed and not path.is_symlink():
                remove_database(path)  # it has no tables
            raise
        raise IndexFileError(f"{path} cannot be written: {error}.") from None
    return connection


def begin_writing(connection: sqlite3.Connection) -> None:
    """Prepare for many rows: a write-ahead log, so that readers are not held up."""
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    # 32 MiB of log instead of 4 between two checkpoints, each of which waits for the disk.
    connection.execute("pragma wal_autocheckpoint = 8192")


def bound_log(connection: sqlite3.Connection, path: Path) -> None:
    """Begin the write-ahead log anew where it has become large, which readers that never rest keep it from by itself.

    Waits for them as long as the connection waits for any lock; where that is too short, the next time will do.
    """
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size > LARGEST_LOG:
        connection.execute("pragma wal_checkpoint(truncate)").fetchall()


def finish_writing(connection: sqlite3.Connection) -> None:
    """Leave one plain file behind: statistics for the planner, no write-ahead log.

    What cannot be done now, because somebody is reading or the disk is full, is left to the next writer: the log is as
    good.
    """
    try:
        if connection.execute("pragma journal_mode").fetchone()[0] == "wal":
            _leave_a_plain_file(connection)
    except sqlite3.OperationalError:
        pass
    finally:
        connection.close()


def _leave_a_plain_file(connection: sqlite3.Connection) -> None:
    analyze_if_grown(connection, 0.1)
    connection.execute("pragma wal_checkpoint(truncate)")
    # A plain journal can be read from a read-only folder by another user; a WAL database cannot.
    connection.execute("pragma journal_mode = delete")


def analyze_if_grown(connection: sqlite3.Connection, share: float) -> None:
    """Bring the planner's statistics up to date where they are missing, or out of date by this share or more."""
    if not _has_grown(connection, share):
        return
    # A smaller sample misleads the planner on a large index: filtered facets then scan whole tables.
    connection.execute("pragma analysis_limit = 100000")
    connection.execute("analyze")
    connection.commit()


def _has_grown(connection: sqlite3.Connection, share: float) -> bool:
    try:
        stat = connection.execute("select stat from sqlite_stat1 where tbl = 'trajectories' limit 1").fetchone()
    except sqlite3.OperationalError:
        return True
    last = connection.execute("select seq from sqlite_sequence where name = 'trajectories'").fetchone()
    known = int(stat[0].split()[0]) if stat else 0
    return last is not None and abs(last[0] - known) >= known * share


def is_index(connection: sqlite3.Connection) -> bool:
    """Say whether a database is an index of rollouts that this version can read."""
    try:
        named = _application(connection) == APPLICATION_ID and 0 < _version(connection) <= SCHEMA_VERSION
        return named and odd_structure(connection) is None
    except sqlite3.Error:
        return False


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    connection = None
    try:
        if read_only:
            uri = f"{path.absolute().as_uri()}?mode=ro"
            connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False)
        else:
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        # A database may come from anybody: its views and triggers get no functions with side effects.
        connection.execute("pragma trusted_schema = off")
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        raise IndexFileError(f"{path} cannot be opened: {error}.") from None
    if hasattr(connection, "setlimit"):  # Python 3.11
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
    # Python looks for Ctrl-C only while it runs itself, and a question to a large database can take minutes.
    connection.set_progress_handler(lambda: 0, STEPS_BETWEEN_SIGNALS)
    return connection


def _check(connection: sqlite3.Connection, path: Path, upgrading: bool = False) -> None:
    try:
        application, version = _application(connection), _version(connection)
        tables = connection.execute("select count(*) from sqlite_master").fetchone()[0]
    except sqlite3.DatabaseError as error:
        connection.close()
        raise IndexFileError(f"{path} is not a SQLite database ({error}).") from None
    if upgrading and not tables:
        return
    if application != APPLICATION_ID:
        connection.close()
        raise IndexFileError(
            f"{path} is a SQLite database, but no index of rollouts: rltracer-index makes one under another name."
        )
    if version > SCHEMA_VERSION:
        connection.close()
        raise IndexFileError(f"{path} was made by a newer version (schema {version}); upgrade datasette-rltracer.")
    if odd := odd_structure(connection):
        connection.close()
        raise IndexFileError(f"{path} is not built as an index is: {odd}. Make another one from the files of the run.")


def _create(connection: sqlite3.Connection) -> None:
    from .migrations import create

    # From the start, so that making the schema does not wait for the disk.
    begin_writing(connection)
    with transaction(connection):
        create(connection)
        _mark(connection)


def _migrate(connection: sqlite3.Connection) -> None:
    from .migrations import migrate

    migrate(connection)
    _mark(connection)


def _mark(connection: sqlite3.Connection) -> None:
    connection.execute(f"pragma application_id = {APPLICATION_ID}")
    connection.execute(f"pragma user_version = {SCHEMA_VERSION}")


def _application(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma application_id").fetchone()[0])


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma user_version").fetchone()[0])


def remove_database(path: Path) -> None:
    """Remove a database file and the journals beside it."""
    path.unlink(missing_ok=True)
    _remove_journals(path)


def replace_database(new: Path, old: Path) -> None:
    """Put a finished database in the place of another one."""
    os.replace(new, old)
    _remove_journals(old)


def _remove_journals(path: Path) -> None:
    for ending in ("-wal", "-shm", "-journal"):
        Path(f"{path}{ending}").unlink(missing_ok=True)


class transaction:
    """A transaction that is rolled back on any error: `with transaction(connection):`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __enter__(self) -> None:
        self.connection.execute("begin immediate")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self.connection.execute("commit")
        finally:
            # Where the disk is full SQLite has rolled back itself; once more would be an error that hides the first.
            if self.connection.in_transaction:
                self.connection.execute("rollback")
