"""The steps of a run in the terminal, with what the index knows of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..amounts import plural, ranges
from .columns import SHORTEST_PLACE, caption, cell, cut, path_ending, screen_width, step_words, width_of, wrapped
from .covered import in_words, refuse_nothing, scoring
from .score_columns import ScoreColumns, count
from .visible import json_line, printable

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..index.among import Among

BEFORE = 13  # columns in which the step stands, before the others
MOST_REASONS = 3  # why steps have no trajectory
FACTS = ("split", "trajectories", "scored", "prompt_groups", "pass_rate", "rewarded", "reward_mean", "gone")


class Mark(NamedTuple):
    """What of a step was not read: how many problems its files have, and all of it in words; "" for nothing."""

    problems: int
    words: str

    @property
    def told(self) -> dict[str, Any]:
        """What a program is told of it."""
        return {"problems": self.problems, "amiss": self.words}


def step_lines(adapter: IndexedAdapter, among: Among, as_json: bool) -> Iterator[str]:
    """Yield a line per step and split of a run; of a run without steps its prompts too.

    Raises SourceError where the run has nothing of what is asked for.
    """
    from ..index.among import Among

    steps = list(filter(among.has_step, adapter.list_steps()))
    known = _known_steps(adapter, among)
    # Of a run whose step has not been read, only its number is known.
    listed = known if among.is_all else _known_steps(adapter, Among())
    places = [fact for step in steps for fact in known.get(step, [] if step in listed else [_unread(step)])]
    if listed and not places:
        refuse_nothing(adapter, among)
    marks = _marks(adapter, places)
    if as_json:
        yield from (json_line({**fact, **mark.told}) for fact, mark in zip(places, marks, strict=True))
        return
    width = screen_width()
    splits = dict.fromkeys(sorted(fact["split"] for fact in places if fact["split"] is not None))
    counted = f"{_counted(places)}{in_words(list(splits), among)}"
    yield from run_caption(adapter, f": {counted}", width)
    if not places:
        return
    if any(fact["trajectories"] is not None for fact in places):
        yield from wrapped(printable(scoring(adapter, places)), width)
    scores = ScoreColumns.of(places)
    yield cut(f"{'':{BEFORE}}{'split':5}  {scores.head('  groups')}", width)
    for fact, mark in zip(places, marks, strict=True):
        yield _line(fact, scores, width)
        yield from (" " * BEFORE + line for line in wrapped(mark.words, width - BEFORE) if line)
    yield from _unread_lines(adapter, places, width)
    yield from _empty_lines(adapter, places, width)
    if steps == [None]:
        from .prompts import prompts_of_step

        yield from prompts_of_step(adapter, None, among, as_json=False)


def _counted(places: list[dict[str, Any]]) -> str:
    """Return how many steps there are, and beside them how many trajectories without one."""
    numbered = len({fact["step"] for fact in places if fact["step"] is not None})
    stepless = sum(fact["trajectories"] or 0 for fact in places if fact["step"] is None)
    if not numbered:
        return "no steps"
    beside = f", {plural(stepless, 'trajectory')} without a step" if stepless else ""
    return f"{plural(numbered, 'step')}{beside}"


def _unread_lines(adapter: IndexedAdapter, places: list[dict[str, Any]], width: int) -> Iterator[str]:
    """Yield which steps could not be read, and what reads those that nobody has asked for yet."""
    unread = [(fact["step"], fact["split"]) for fact in places if fact["trajectories"] is None]
    failed = _failed(adapter) if unread else set()
    if could_not := [step for step, split in unread if (step, split) in failed]:
        yield from wrapped(f"Could not be read: {_steps(could_not)}. --step N says why.", width)
    if set(unread) - failed:
        which = "Steps with –" if not could_not else "Other steps with –"
        how = "--step N reads one, " if adapter.refreshes else ""
        yield from wrapped(f"{which} have not been read yet: {how}rltracer-index reads all of them.", width)


def _empty_lines(adapter: IndexedAdapter, places: list[dict[str, Any]], width: int) -> Iterator[str]:
    """Yield why steps that were read have no trajectory, those with the same reason together."""
    empty = {(fact["step"], fact["split"]) for fact in places if fact["trajectories"] == 0}
    if not empty:
        return
    from ..browse.outcome import why_empty

    alike: dict[tuple[str | None, str], list[int | None]] = {}
    for (step, split), why in why_empty(adapter.connection, adapter.run_id).items():
        if (step, split) in empty:
            alike.setdefault((split, why), []).append(step)
    for (split, why), steps in list(alike.items())[:MOST_REASONS]:
        where = f"{_in_steps(steps)}{f' ({split})' if split is not None else ''}"
        yield from wrapped(printable(f"No trajectory {where}{f': {why}' if why else ''}."), width)
    if more := sum(map(len, list(alike.values())[MOST_REASONS:])):
        yield from wrapped(f"{plural(more, 'more step')} without a trajectory: --step N says why.", width)


def _failed(adapter: IndexedAdapter) -> set[tuple[int | None, str | None]]:
    from ..index.database import IndexFileError
    from ..index.states import failed_steps
    from ..sources.base import SourceError

    try:
        return failed_steps(adapter.connection, adapter.run_id)
    except (IndexFileError, SourceError):
        return set()  # a run's folder of which nothing was read yet


def _steps(steps: list[int | None]) -> str:
    return _in_steps(steps).removeprefix("in ")


def _in_steps(steps: list[int | None]) -> str:
    numbers = ranges(step for step in steps if step is not None)
    return f"in step{'' if numbers.isdecimal() else 's'} {numbers}" if numbers else "without a step"


def run_caption(adapter: IndexedAdapter, said: str, width: int) -> Iterator[str]:
    """Yield what is said of a run after its folder, and before that its name in the index, where it is another one."""
    folder = str(adapter.rollout_dir)
    name = "" if adapter.refreshes else _name(adapter)
    if name in ("", adapter.rollout_dir.name):
        yield from caption(folder, said, width)
        return
    name = cut(name, width // 2)
    room = width - width_of(f"{name}, {said}")
    place = f", {path_ending(printable(folder), room)}" if room >= SHORTEST_PLACE else ""
    yield from wrapped(f"{name}{place}{printable(said)}", width)


def _name(adapter: IndexedAdapter) -> str:
    from ..index.queries import runs

    return next(run.name for run in runs(adapter.connection) if run.id == adapter.run_id)


def _unread(step: int | None) -> dict[str, Any]:
    return {"step": step, **dict.fromkeys(FACTS)}


def _line(fact: dict[str, Any], scores: ScoreColumns, width: int) -> str:
    cells = scores.cells(fact, f"  {count(fact['prompt_groups']):>6}")
    return cut(f"  {step_words(fact['step']):9}  {cell(fact['split'], 5)}  {cells}", width)


def _marks(adapter: IndexedAdapter, places: list[dict[str, Any]]) -> list[Mark]:
    """Return what stands beside each of these steps: of which of their files not everything was read."""
    from ..index.database import IndexFileError
    from ..index.states import states_of_steps, step_amiss, step_marks
    from ..sources.base import SourceError

    try:
        states = states_of_steps(adapter.connection, adapter.run_id)
    except (IndexFileError, SourceError):
        states = {}  # a run's folder of which nothing was read yet
    found = []
    for fact in places:
        amiss = step_amiss(states.get(fact["step"], []), fact["split"])
        found.append(Mark(amiss["problems"], "; ".join(step_marks(amiss, fact["gone"], fact["trajectories"]))))
    return found


def _known_steps(adapter: IndexedAdapter, among: Among) -> dict[int | None, list[dict[str, Any]]]:
    """Return what the index knows of each step, one row per split; nothing where the run has not been read yet."""
    from ..index.database import IndexFileError
    from ..index.lists import step_facts
    from ..sources.base import SourceError

    found: dict[int | None, list[dict[str, Any]]] = {}
    try:
        for fact in step_facts(adapter.connection, adapter.run_id, among):
            found.setdefault(fact["step"], []).append(fact)
    except (IndexFileError, SourceError):
        pass  # a run's folder of which nothing was read yet
    return found
