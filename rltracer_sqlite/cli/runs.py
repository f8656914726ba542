"""The runs of an index in the terminal, where it holds several of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..amounts import plural, ranges
from .columns import caption, cell, cut, decimal, screen_width, width_of, wrapped
from .visible import json_line, printable

if TYPE_CHECKING:
    from ..index.lists import Among
    from ..sources.places import Root

LONGEST_NAME = 20


def several_runs(place: Root, among: Among, as_json: bool) -> Iterator[str] | None:
    """Return a line per run of an index that holds several; None for any other place.

    Raises SourceError where none of them has what is asked for.
    """
    from ..index.contents import lacking
    from ..index.database import open_index
    from ..index.lists import run_facts
    from ..sources.base import SourceError
    from ..sources.places import is_database

    if not isinstance(place, Path) or not is_database(place):
        return None
    with closing(open_index(place)) as connection:
        facts = run_facts(connection, among)
        if len(facts) > 1 and not any(fact["trajectories"] for fact in facts) and not among.is_all:
            ids = [fact["run_id"] for fact in facts]
            raise SourceError(lacking(connection, ids, split=among.split, env=among.env)[1])
    if len(facts) < 2:
        return None
    return map(json_line, facts) if as_json else _lines(place, facts, among)


def _lines(place: Path, facts: list[dict[str, Any]], among: Among) -> Iterator[str]:
    screen = screen_width()
    width = min(max(width_of(fact["run"]) for fact in facts), LONGEST_NAME)
    yield caption(str(place), f": {plural(len(facts), 'run')}; --run NAME or its number shows one", screen)
    env = "" if among.env is None else f" and of env {among.env}"
    yield from wrapped(printable(f"Pass rate and reward are of the split named, over all its steps{env}."), screen)
    head = f"{'rollouts':>8}  {'groups':>6}  {'split':5}  {'pass rate':>9}  {'reward':>7}  steps"
    yield cut(f"  {'run':>3}  {'name':{width}}  {head}", screen)
    for fact in facts:
        numbers = f"{fact['trajectories']:8,}  {fact['prompt_groups']:6,}"
        rates = f"{cell(fact['split'], 5)}  {decimal(fact['pass_rate']):>9}  {decimal(fact['reward_mean']):>7}"
        steps = ranges(fact["steps"]) or "–"
        yield cut(f"  {fact['run_id']:3}  {cell(fact['run'], width)}  {numbers}  {rates}  {steps}", screen)
