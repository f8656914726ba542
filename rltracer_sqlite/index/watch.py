"""Following runs while they are written: look after look, new bytes are read, and what is unchanged costs a stat."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..sources.base import Source, SourceError
from ..sources.places import relist
from .database import (
    IndexFileError,
    analyze_if_grown,
    begin_writing,
    bound_log,
    finish_writing,
    open_for_writing,
)
from .followed import Followed
from .gone import is_listed
from .lock import WATCHING, WriterLock
from .plan import find_jobs
from .refresh import Progress, Refreshed, refresh_run
from .runs import ensure_run, naming, set_success
from .unopened import listed_shards
from .vanished import find_vanished, flag_vanished

OPENING_SECONDS = 30.0  # to wait for another writer before the first look
LOOKING_SECONDS = 1.0  # and before each later one, which the next look makes up for
CLOSING_SECONDS = 5.0  # for readers and writers when the watch ends, as long as a service is given to stop
GROWN_SHARE = 0.5  # new trajectories after which the planner's statistics are made anew while watching

TextRefresh = Callable[[sqlite3.Connection, "Progress | None"], str]  # returns what could not be read


@dataclass
class Look:
    """What one look at all runs gave."""

    read: list[Refreshed] = field(default_factory=list)
    trouble: str = ""  # what kept the look from being finished, beside the runs' own troubles

    @property
    def read_bytes(self) -> int:
        return sum(done.read_bytes for done in self.read)


class Watch:
    """The right to watch an index, and its connection while that is held: `with Watch(...) as watch: watch.look()`.

    Others may write between two looks. Raises IndexFileError where somebody watches the index already.
    `refresh_text` brings the full text up to date after what was read, where that is wanted; `processes` and
    `executor` are those of `refresh_run`.
    """

    def __init__(
        self,
        database: Path,
        runs: Sequence[Followed],
        refresh_text: TextRefresh | None = None,
        processes: int | None = 1,
        executor: str | None = None,
    ) -> None:
        self.database, self.runs, self.refresh_text = database, list(runs), refresh_text
        self.processes, self.executor = processes, executor
        self.text_is_old = refresh_text is not None
        what = ", ".join(str(run.root) for run in runs) or "what is opened"
        self._lock = WriterLock(database, f"watching {what}"[:180], right=WATCHING)
        self._file: tuple[int, int] | None = None

    def __enter__(self) -> Watch:
        self._lock.__enter__()
        try:
            self._open()
            self.first_id = self.last_id()
        except BaseException:
            self._lock.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._close()
        finally:
            self._lock.__exit__()

    def last_id(self) -> int:
        """Return the highest id that a trajectory of the index has had."""
        row = self.connection.execute("select seq from sqlite_sequence where name = 'trajectories'").fetchone()
        return int(row[0]) if row else 0

    def look(self, progress: Progress | None = None) -> Look:
        """Read what is new. What cannot be read, or written, is said and tried again by the next look.

        A `progress` may raise Stopped. Raises IndexFileError where the database has gone, and sqlite3.DatabaseError
        where it is damaged.
        """
        self._follow_file()
        look = Look()
        for run in self.runs:
            try:
                if done := self._look_at(run, progress):
                    look.read.append(done)
                run.trouble = ""
            except SourceError as error:
                run.trouble = str(error)
            except (IndexFileError, sqlite3.OperationalError) as error:
                look.trouble = self._unwritten(error)
                run.tried.clear()  # it is not these files that are amiss
            except OSError as error:
                run.trouble = f"{error.filename or run.root} cannot be read: {error.strerror or error}."
        self._finish(look, progress)
        return look

    def _look_at(self, run: Followed, progress: Progress | None) -> Refreshed | None:
        relist(run.root)
        if not run.root.exists():
            run.unknown = None
            is_known = self._flag_vanished(run) or run.source is not None
            raise SourceError(f"The run {run.root} " + ("has vanished." if is_known else "does not exist yet."))
        if run.source is None:
            run.source = run.recognised()
        if run.run_id is not None and not self._has_news(run, run.source, run.run_id):
            return None
        with WriterLock(self.database, "watching", wait=LOOKING_SECONDS):
            if run.run_id is None:
                run.run_id = self._ensure(run, run.source)
            return refresh_run(
                self.connection, run.source, run.root, run.run_id, run.steps, False, progress,
                self.processes, self.executor,
            )  # fmt: skip

    def _flag_vanished(self, run: Followed) -> bool:
        """Flag the rows of a run that has vanished as gone; say whether the index knows the run."""
        vanished = find_vanished(self.connection, run.root)
        if vanished is not None and not vanished.is_flagged:
            with WriterLock(self.database, "watching", wait=LOOKING_SECONDS):
                flag_vanished(self.connection, vanished)
        return vanished is not None

    def _ensure(self, run: Followed, source: Source) -> int:
        run.naming = naming(self.connection, run.root, run.name)
        run_id = ensure_run(self.connection, source, run.root, run.name)
        if run.rule:
            set_success(self.connection, run_id, *run.rule)
        return run_id

    def _has_news(self, run: Followed, source: Source, run_id: int) -> bool:
        shards = listed_shards(self.connection, source, run.root)
        wanted = [shard for shard in shards if not shard.aside and run.steps(shard.step)]
        jobs = find_jobs(self.connection, run_id, run.root, wanted)
        due = [job for job in jobs if run.is_due(job)]
        return bool(due) or not is_listed(self.connection, run_id, shards)

    def _finish(self, look: Look, progress: Progress | None) -> None:
        self.text_is_old = self.text_is_old or (bool(look.read) and self.refresh_text is not None)
        try:
            if self.refresh_text and self.text_is_old:
                with WriterLock(self.database, "watching", wait=LOOKING_SECONDS):
                    look.trouble = self.refresh_text(self.connection, progress) or look.trouble
                self.text_is_old = False
            if look.read_bytes:
                analyze_if_grown(self.connection, GROWN_SHARE)
                bound_log(self.connection, self.database)
        except (IndexFileError, sqlite3.OperationalError) as error:
            look.trouble = self._unwritten(error)

    def _unwritten(self, error: Exception) -> str:
        return str(error) if isinstance(error, IndexFileError) else f"{self.database} cannot be written: {error}."

    def _open(self) -> None:
        with WriterLock(self.database, "watching", wait=OPENING_SECONDS):
            self.connection = open_for_writing(self.database)
            begin_writing(self.connection)
        self._file = self._identity()

    def _identity(self) -> tuple[int, int] | None:
        with suppress(OSError):
            status = os.stat(self.database)
            return status.st_dev, status.st_ino
        return None

    def _follow_file(self) -> None:
        """Go over to the database that has taken the place of the one that was opened, for example by --rebuild."""
        there = self._identity()
        if there == self._file:
            return
        self.connection.close()
        if there is None:
            raise IndexFileError(f"{self.database} was removed while it was watched.")
        self._open()
        for run in self.runs:
            run.run_id = None
        self.text_is_old = self.refresh_text is not None

    def _close(self) -> None:
        """Leave a plain file with statistics behind, as far as readers and other writers allow."""
        try:
            self.connection.execute(f"pragma busy_timeout = {int(CLOSING_SECONDS * 1000)}")
            with WriterLock(self.database, "ending a watch", wait=CLOSING_SECONDS):
                finish_writing(self.connection)
        except (IndexFileError, sqlite3.Error):
            self.connection.close()  # all that was read is committed; the next writer tidies up
