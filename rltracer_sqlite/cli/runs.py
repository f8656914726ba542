"""The runs of an index in the terminal, where it holds several of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..amounts import plural, ranges
from . import json_line
from .columns import cell, cut, decimal, screen_width, width_of

if TYPE_CHECKING:
    from ..sources.places import Root

LONGEST_NAME = 26


def several_runs(place: Root, as_json: bool) -> Iterator[str] | None:
    """Return a line per run of an index that holds several; None for any other place."""
    from ..index.database import open_index
    from ..index.queries import run_facts
    from ..sources.places import is_database

    if not isinstance(place, Path) or not is_database(place):
        return None
    with closing(open_index(place)) as connection:
        facts = run_facts(connection)
    if len(facts) < 2:
        return None
    return map(json_line, facts) if as_json else _lines(place, facts)


def _lines(place: Path, facts: list[dict[str, Any]]) -> Iterator[str]:
    screen = screen_width()
    width = min(max(width_of(fact["run"]) for fact in facts), LONGEST_NAME)
    yield cut(f"{place}: {plural(len(facts), 'run')}; --run NAME or its number shows one", screen)
    head = f"{'rollouts':>8}  {'groups':>6}  {'pass rate':>9}  {'reward':>7}  steps"
    yield cut(f"  {'run':>3}  {'name':{width}}  {head}", screen)
    for fact in facts:
        numbers = f"{fact['trajectories']:8,}  {fact['prompt_groups']:6,}"
        rates = f"{decimal(fact['pass_rate']):>9}  {decimal(fact['reward_mean']):>7}"
        steps = ranges(fact["steps"]) or "–"
        yield cut(f"  {fact['run_id']:3}  {cell(fact['run'], width)}  {numbers}  {rates}  {steps}", screen)
