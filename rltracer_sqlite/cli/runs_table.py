"""The runs of an index that holds several, as a table: what `rltracer inspect` lists of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..amounts import plural, ranges
from .amiss import say_amiss
from .columns import caption, cell, cut, decimal, screen_width, width_of, wrapped
from .previews import names_apart
from .run_facts import facts_of_runs, for_programs, scored_of
from .score_columns import any_over, reward, reward_head
from .visible import printable

if TYPE_CHECKING:
    from ..index.among import Among
    from ..sources.places import Root

SHORTEST_NAME, LONGEST_NAME = 10, 40
LONGEST_STEPS = 12
MOST_TOLD = 4  # success rules or systems of the runs


def several_runs(place: Root, among: Among, as_json: bool) -> Iterator[str] | None:
    """Return a line per run of an index that holds several; None for any other place.

    Raises SourceError where none of them has what is asked for.
    """
    from ..index.contents import lacking
    from ..index.database import open_index
    from ..sources.base import SourceError
    from ..sources.places import is_database

    if not isinstance(place, Path) or not is_database(place):
        return None
    with closing(open_index(place)) as connection:
        facts = facts_of_runs(connection, among)
        if len(facts) > 1 and not any(fact["trajectories"] for fact in facts) and not among.is_all:
            ids = [fact["run_id"] for fact in facts]
            raise SourceError(lacking(connection, ids, split=among.split, env=among.env)[1])
    if len(facts) < 2:
        return None
    return _then_amiss(map(for_programs, facts) if as_json else _lines(place, facts, among), place)


def _then_amiss(lines: Iterator[str], place: Path) -> Iterator[str]:
    """Yield the lines of a list; then say what of its runs was not read."""
    from ..index.database import open_index

    yield from lines
    with closing(open_index(place)) as connection:
        say_amiss(connection, place)


def _lines(place: Path, facts: list[dict[str, Any]], among: Among) -> Iterator[str]:
    screen, has_over = screen_width(), any_over(facts)
    steps_of = [ranges(fact["steps"]) or "–" for fact in facts]
    scored = [scored_of(fact) for fact in facts]
    columns = max(map(len, ["scored", *scored]))
    head = f"{'trajectories':>12}  {'split':5}  {'scored':>{columns}}  "
    head += f"{'pass rate':>9}  {reward_head(has_over, 6)}  steps"
    # Names give way to the steps, which stand last, as far as they can.
    beyond = min(max(map(len, steps_of)), LONGEST_STEPS) - len("steps")
    room = screen - len(f"  run    {head}") - max(beyond, 0)
    longest = max(SHORTEST_NAME, min(room, LONGEST_NAME))
    width = min(max(len("name"), *(width_of(printable(fact["run"])) for fact in facts)), longest)
    yield from caption(str(place), f": {plural(len(facts), 'run')}; --run NAME or its number shows one", screen)
    env = "" if among.env is None else f" and of env {among.env}"
    said = f"Scored, pass rate and reward are of the split named, over all its steps{env}."
    yield from wrapped(printable(said), screen)
    if stepless := [fact for fact in facts if fact["without_step"] and fact["steps"]]:
        yield from wrapped(_without_step(stepless), screen)
    if has_over:
        yield from wrapped("Mean reward: over the trajectories that have one, which are counted beside it.", screen)
    yield from wrapped(printable(f"System: {_by(facts, 'source')}. Success: {_by(facts, 'rule')}."), screen)
    yield cut(f"  {'run':>3}  {'name':{width}}  {head}", screen)
    names = names_apart([fact["run"] for fact in facts], width)
    for fact, name, steps, of_split in zip(facts, names, steps_of, scored, strict=True):
        counts = f"{fact['trajectories']:12,}  {cell(fact['split'], 5)}  {of_split:>{columns}}"
        rates = f"{decimal(fact['pass_rate']):>9}  {reward(fact, has_over, 6)}"
        yield cut(f"  {fact['run_id']:3}  {cell(name, width)}  {counts}  {rates}  {steps}", screen)


def _by(facts: list[dict[str, Any]], name: str) -> str:
    """Return the values of one kind that runs have, each with its runs where there are several."""
    runs_of: dict[str, list[int]] = {}
    for fact in facts:
        runs_of.setdefault(fact[name], []).append(fact["run_id"])
    if len(runs_of) == 1:
        return next(iter(runs_of))
    told = [f"{value} ({_runs(runs)})" for value, runs in runs_of.items()]
    return ", ".join([*told[:MOST_TOLD], *(["…"] if len(told) > MOST_TOLD else [])])


def _without_step(facts: list[dict[str, Any]]) -> str:
    """Return how many trajectories of these runs have no step, though others of theirs have one."""
    count = sum(fact["without_step"] for fact in facts)
    return f"Without a step: {plural(count, 'trajectory')} of {_runs([fact['run_id'] for fact in facts])}."


def _runs(numbers: list[int]) -> str:
    return f"run{'s' if len(numbers) > 1 else ''} {ranges(numbers)}"
