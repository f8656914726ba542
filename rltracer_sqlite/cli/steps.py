"""The steps of a run in the terminal, with what the index knows of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..amounts import plural
from . import json_line
from .columns import cell, cut, decimal, screen_width, wrapped

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter

FACTS = ("split", "trajectories", "prompt_groups", "pass_rate", "reward_mean", "gone")


def step_lines(adapter: IndexedAdapter, as_json: bool) -> Iterator[str]:
    """Yield a line per step and split of a run; of a run without steps its prompts too."""
    from .prompts import prompt_lines

    steps = adapter.list_steps()
    known = _known_steps(adapter)
    # Of a run whose step has not been read, only its number is known.
    places = [fact for step in steps for fact in known.get(step, [{"step": step, **dict.fromkeys(FACTS)}])]
    if as_json:
        yield from map(json_line, places)
        return
    width = screen_width()
    yield cut(f"{adapter.rollout_dir}: {plural(len([step for step in steps if step is not None]), 'step')}", width)
    if not places:
        return
    yield cut(f"  {'':9}  {'split':5}  {'trajectories':>12}  {'groups':>6}  {'pass rate':>9}  {'reward':>7}", width)
    for fact in places:
        step = "no step" if fact["step"] is None else f"step {fact['step']}"
        numbers = f"{_count(fact['trajectories']):>12}  {_count(fact['prompt_groups']):>6}"
        rates = f"{decimal(fact['pass_rate']):>9}  {decimal(fact['reward_mean']):>7}"
        gone = f"  {fact['gone']:,} gone" if fact["gone"] else ""
        yield cut(f"  {step:9}  {cell(fact['split'], 5)}  {numbers}  {rates}{gone}", width)
    if any(fact["trajectories"] is None for fact in places):
        how = "--step N reads one, " if adapter.refreshes else ""
        yield from wrapped(f"Steps with – have not been read yet: {how}rltracer-index reads all of them.", width)
    if steps == [None]:
        yield from prompt_lines(adapter, None)


def _known_steps(adapter: IndexedAdapter) -> dict[int | None, list[dict[str, Any]]]:
    """Return what the index knows of each step, one row per split; nothing where the run has not been read yet."""
    from ..index.database import IndexFileError
    from ..index.queries import step_facts
    from ..sources.base import SourceError

    found: dict[int | None, list[dict[str, Any]]] = {}
    try:
        for fact in step_facts(adapter.connection, adapter.run_id):
            found.setdefault(fact["step"], []).append(fact)
    except (IndexFileError, SourceError):
        pass  # a run's folder of which nothing was read yet
    return found


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"
