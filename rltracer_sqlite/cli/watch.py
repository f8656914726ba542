"""`rltracer-index --watch`: look after look until a signal; a status line in a terminal, a log elsewhere, a summary."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .amiss import without_text
from .say import say
from .status import Status, where_there_is_room

if TYPE_CHECKING:
    from ..index.followed import Followed
    from ..index.watch import Look, TextRefresh, Watch
    from ..search.refresh import Progress
    from ..sources.places import Root
    from ..stopping import Stopping
    from .asked import Options


def watch_runs(database: Path, roots: Sequence[Root], options: Options, every: float) -> None:
    """Follow runs until SIGINT or SIGTERM, and print what that gave. Raises IndexFileError."""
    from ..index.followed import Followed
    from ..index.watch import Watch
    from ..stopping import Stopped, Stopping

    runs = [
        Followed(root, _finder(root, options, database), options.steps, options.name, options.rule) for root in roots
    ]
    below = {} if options.name else {root: Below(0, _runs_below(root)) for root in roots}
    is_logged = not options.quiet and not sys.stdout.isatty()
    started, read, status = time.monotonic(), 0, Status(options.quiet)
    judged: set[int] = set()
    with Stopping() as stopping:
        text = _text_follower(database) if options.fts else None
        with Watch(database, runs, text, options.jobs, options.executor) as watch:
            status.say(f"Watching; stop with Ctrl-C. Look at it with: datasette {database}" if status.is_shown else "")
            progress, told = _progress(status, stopping, options), Told(watch.first_id, _gone(watch.connection))
            while not stopping.is_asked:
                try:
                    look = watch.look(progress)
                except Stopped:
                    break
                read += look.read_bytes
                _warn(look, status)
                judged = _warn_of_rule(watch, look, judged, status)
                _tell_names(runs, status)
                _tell_joined(watch, look, below, status)
                told = _log(watch, look, told) if is_logged else told
                if status.is_shown and (moved := _moved(look)):
                    status.say(f"{'. '.join(moved)}.")
                status.say(" ".join(_troubles(runs, look)))
                status.show(_state(watch))
                stopping.sleep(every)
            status.clear()
            found = max(watch.last_id() - watch.first_id, 0), _count(watch.connection)
            silent = without_text(watch.connection, {run.run_id for run in runs})
        if not options.quiet:
            with where_there_is_room():
                say("\n".join([*silent, _summary(database, time.monotonic() - started, read, *found)]))


def _warn(look: Look, status: Status) -> None:
    from .report import warn_of_misfits

    for done in look.read:
        if done.misfits:
            status.clear()
            with where_there_is_room():
                warn_of_misfits(done)
        status.tell_once(f"Not read: {reason}" for reason in done.unread.values())


def _warn_of_rule(watch: Watch, look: Look, judged: set[int], status: Status) -> set[int]:
    """Say of each run, when its first trajectories were read, where the rule that was asked for scores none of them.

    It stays: what comes later may be what it scores. Returns the runs of which that is known.
    """
    from ..passrates import SuccessRule
    from ..unscored import scores_nothing

    asked = {run.run_id: SuccessRule(*run.rule) for run in watch.runs if run.rule and run.run_id not in judged}
    holds = "select exists (select 1 from trajectories where run_id = ?)"
    new = {done.run_id for done in look.read if done.run_id in asked}
    new = {run_id for run_id in new if watch.connection.execute(holds, (run_id,)).fetchone()[0]}
    for run_id in new:
        if why := scores_nothing(watch.connection, [run_id], asked[run_id]):
            status.say(f"Warning: {why} What is read later may have it.")
    return judged | new


def _moved(look: Look) -> list[str]:
    """Return how many rows are read from another file now, since theirs has vanished or is back."""
    from ..index.moved_rows import moved_words

    return [words for done in look.read for words in moved_words(done.moved)]


class Told(NamedTuple):
    """What the log has told so far: the highest id of a trajectory, and how many files have vanished."""

    last_id: int
    gone: int


def _log(watch: Watch, look: Look, told: Told) -> Told:
    """Print a line of a log where a look found something, new bytes or files that vanished or came back."""
    from ..amounts import plural, size

    now = Told(watch.last_id(), _gone(watch.connection))
    if not look.read_bytes and now.gone == told.gone:
        return told
    found = [f"read {size(look.read_bytes)}", plural(max(now.last_id - told.last_id, 0), "new trajectory")]
    line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {', '.join([*found, *_moved(look), *_counts(watch)])}"
    with where_there_is_room():
        say(line)
        sys.stdout.flush()  # whoever follows the log sees it now, and not when a buffer is full
    return now


def _gone(connection: sqlite3.Connection) -> int:
    return int(connection.execute("select count(*) from shards where state = 'gone'").fetchone()[0])


def _finder(root: Root, options: Options, database: Path) -> Any:
    from .indexing import find_source, remember
    from .several import refuse_merging

    def find() -> Any:
        source = find_source(root, options)
        refuse_merging(root, options, database, source)
        remember(root, options.tokenizer)
        return source

    return find


def _text_follower(database: Path) -> TextRefresh:
    from ..roots import Roots
    from ..search.refresh import text_follower

    return text_follower(lambda: Roots.for_database(database))


def _progress(status: Status, stopping: Stopping, options: Options) -> Progress:
    from ..amounts import size
    from .progress import progress_lines

    in_lines = progress_lines("watching") if options.progress and not status.is_shown else None

    def progress(read: int, total: int) -> None:
        stopping.check()
        status.show(f"reading {size(read)} of {size(total)}")
        if in_lines:
            in_lines(read, total)

    return progress


def _tell_names(runs: Sequence[Followed], status: Status) -> None:
    """Print once what is to be told of the names that runs were given."""
    for run in runs:
        if run.naming:
            status.say(f"{run.root}: {run.naming}.")
            run.naming = None


class Below(NamedTuple):
    """How many files of a run were there when the runs in its folder were looked for, and which these are."""

    files: int
    runs: list[str]


def _tell_joined(watch: Watch, look: Look, below: dict[Root, Below], status: Status) -> None:
    """Print once where a folder that is followed as one run has become one of several."""
    from .several import joined

    read = {done.run_id for done in look.read}
    for run in watch.runs:
        if run.run_id not in read or run.root not in below:
            continue
        count = "select count(*) from shards where run_id = ?"
        files, before = watch.connection.execute(count, (run.run_id,)).fetchone()[0], below[run.root]
        if files != before.files:
            below[run.root] = now = Below(files, _runs_below(run.root))
            if len(now.runs) > len(before.runs):
                status.tell_once([joined(run.root, now.runs)])


def _runs_below(root: Root) -> list[str]:
    from ..sources.base import SourceError
    from .several import runs_below

    try:
        return runs_below(root)
    except (SourceError, OSError):
        return []  # following it says what is wrong


def _troubles(runs: Sequence[Followed], look: Look) -> list[str]:
    said = [run.trouble for run in runs if run.trouble] + ([look.trouble] if look.trouble else [])
    return [*said, "Trying again."] if said else []


def _state(watch: Watch) -> str:
    new = max(watch.last_id() - watch.first_id, 0)
    return ", ".join([f"watching: {new:,} new", *_counts(watch), time.strftime("%H:%M:%S")])


def _counts(watch: Watch) -> list[str]:
    """Return how much there is, the last step, and what is not finished yet, has vanished or could not be read."""
    from ..amounts import plural
    from ..index.states import waiting_words

    step, waiting, problems = watch.connection.execute(
        """
        select max(step), (select count(*) from shards where state = 'waiting'),
            (select ifnull(sum(problems), 0) from shards)
        from steps where trajectories > 0
        """
    ).fetchone()
    parts = [f"{_count(watch.connection):,} in all"]
    parts += [f"step {step}"] if step is not None else []
    parts += [waiting_words(waiting)] if waiting else []
    parts += [f"{plural(gone, 'file')} gone"] if (gone := _gone(watch.connection)) else []
    return [*parts, *([plural(problems, "problem")] if problems else [])]


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("select ifnull(sum(trajectories), 0) from steps").fetchone()[0])


def _summary(database: Path, seconds: float, read: int, new: int, count: int) -> str:
    from ..amounts import plural, size

    hours, minutes = divmod(int(seconds) // 60, 60)
    lasted = f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else f"{seconds:.0f} s"
    return (
        f"Watched for {lasted}: {plural(new, 'new trajectory')}, {size(read)} read; "
        f"{database} holds {plural(count, 'trajectory')}."
    )
