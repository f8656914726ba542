"""What every command that shows figures of a run says on stderr: what of that run was not read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from ..amounts import plural
from .columns import wrapped
from .say import say
from .visible import in_line

if TYPE_CHECKING:
    import sqlite3

    from ..adapter import IndexedAdapter
    from ..index.among import Among
    from ..sources.places import Root

MOST_RUNS = 5  # that are told one by one


def say_amiss(connection: sqlite3.Connection, place: Root, runs: Collection[int] | None = None) -> None:
    """Say what of some runs of an index, or of all of them (None), was not read; `place` is what `inspect` takes."""
    for line in amiss_lines(connection, place, runs):
        say(line, err=True)


def amiss_lines(
    connection: sqlite3.Connection, place: Root, runs: Collection[int] | None = None, is_read_when_asked: bool = False
) -> list[str]:
    """Return what `say_amiss` says: a line for each run, or nothing where all was read.

    Of a run that `is_read_when_asked` steps that were not read are not amiss.
    """
    from ..index.queries import runs as known_runs
    from ..index.states import amiss, lists_them, run_states

    known, lines = known_runs(connection), []
    states = run_states(connection)
    for run in known:
        how = lists_them(str(place), run.name if len(known) > 1 else None)
        row = {**states[run.id], **({"untried_steps": 0} if is_read_when_asked else {})}
        if (runs is None or run.id in runs) and (said := amiss(row, how)):
            lines.append(in_line(f"{run.name}: {said}"))
    more = len(lines) - MOST_RUNS
    if more > 1:
        lines[MOST_RUNS:] = [
            f"{plural(more, 'run')} more, not read completely: rltracer runs {quote(str(place))} lists them."
        ]
    return lines


def say_amiss_of(adapter: IndexedAdapter, step: int | None = None) -> None:
    """Say what of an adapter's run, or of a step of it, was not read, or is without text."""
    from ..index.database import IndexFileError
    from ..sources.base import SourceError

    place = adapter.rollout_dir if adapter.refreshes else adapter.index
    try:
        if step is not None:
            lines = _lines_of_step(adapter, place, step)
        else:
            lines = amiss_lines(adapter.connection, place, {adapter.run_id}, adapter.refreshes)
    except (IndexFileError, SourceError):
        return  # a run's folder of which nothing was read yet
    how = ["--tokenizer PATH"] if adapter.refreshes else []
    for line in [*lines, *without_text(adapter.connection, {adapter.run_id}, *how)]:
        say(line, err=True)


def without_text(connection: sqlite3.Connection, runs: Collection[int | None], *how: str) -> list[str]:
    """Return a line for each of these runs of which trajectories have no text for want of a tokenizer."""
    from ..index.queries import runs as known_runs
    from ..index.states import run_states, text_words

    states = run_states(connection)
    asked = [run for run in known_runs(connection) if run.id in runs]
    return [in_line(f"{run.name}: {words}.") for run in asked for words in text_words(states[run.id], *how)]


def _lines_of_step(adapter: IndexedAdapter, place: Root, step: int) -> list[str]:
    from ..browse.outcome import GAVE_NONE, why_nothing_is_read
    from ..browse.steps import step_key
    from ..index.queries import runs as known_runs
    from ..index.states import amiss, lists_them, step_states

    known = known_runs(adapter.connection)
    run = next(run for run in known if run.id == adapter.run_id)
    where = (adapter.connection, run.id)
    # Where the step has no trajectory, its list has said already why its files gave none.
    told = f"s.step is :step and {GAVE_NONE}" if why_nothing_is_read(*where, step_key(step)) else "0"
    every = step_states(*where, step)
    row = {**step_states(*where, step, told=told), **{name: every[name] for name in ("files", "stepless")}}
    said = amiss(row, lists_them(str(place), run.name if len(known) > 1 else None))
    return [in_line(f"{run.name}, step {step}: {said}")] if said else []


def gone_lines(
    adapter: IndexedAdapter, width: int, among: Among, *step: int | None, prompts: Sequence[int] | None = None
) -> Iterator[str]:
    """Yield how many of the trajectories that a list counts cannot be opened any more.

    The list is of a `step`, or of all of them where none is given.
    """
    from ..index.lists import count_gone

    gone, count, has_vanished = count_gone(adapter.connection, adapter.run_id, among, step, prompts)
    if gone:
        why = "its file is gone" if gone == 1 else "their files are gone"
        why += "" if has_vanished else " or cannot be read"
        yield from wrapped(f"{gone:,} of {plural(count, 'trajectory')} counted here cannot be opened: {why}.", width)
