"""The prompts of a run in the terminal: those of a step, one over all steps, and the hardest of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from . import printable
from .columns import cell, cut, decimal, screen_width
from .inspect import dump
from .report import plural

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter


def chosen(asked: str, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the groups of the prompt of this number, or of those whose keys begin with it.

    A number comes before a key that begins with the same digits; which of them is meant is then said on stderr.
    """
    from ..index.queries import prompt_number

    number = prompt_number(asked)
    by_key = [group for group in groups if group["prompt"].startswith(asked)]
    by_number = [group for group in groups if number is not None and group["prompt_id"] == number]
    others = list(dict.fromkeys(group["prompt"][:12] for group in by_key if group["prompt_id"] != number))
    if by_number and others:
        kept = (
            f"Prompt {asked} by its number, not by its key ({', '.join(others[:5])}): give more of a key to choose it."
        )
        click.echo(printable(kept), err=True)
    return by_number or by_key


def over_steps(adapter: IndexedAdapter, asked: str, as_json: bool) -> Iterator[str]:
    """Yield the groups of a prompt in the order of their steps; of a run's folder every step is read first."""
    from ..index.queries import groups_of_prompts
    from ..sources.base import SourceError

    _read_all(adapter)
    groups = chosen(asked, groups_of_prompts(adapter._open(), adapter._run(), asked))
    if not groups:
        raise SourceError(f"The run has no prompt {asked!r}, by its number or the beginning of its key.")
    if as_json:
        yield from map(dump, groups)
        return
    width, prompt = screen_width(), None
    for group in groups:
        if group["prompt_id"] != prompt:
            prompt = group["prompt_id"]
            yield cut(f"prompt {prompt}  {group['prompt'][:12]}  {group['preview']}", width)
            yield cut(f"  {'':9}  {'split':5}  {'rollouts':>8}  {'pass rate':>9}  {'reward':>7}", width)
        step = "no step" if group["step"] is None else f"step {group['step']}"
        rates = f"{decimal(group['pass_rate']):>9}  {decimal(group['reward_mean']):>7}"
        yield cut(f"  {step:9}  {cell(group['split'], 5)}  {group['trajectories']:8,}  {rates}", width)


def hardest(adapter: IndexedAdapter, limit: int, as_json: bool) -> Iterator[str]:
    """Yield the prompts with the lowest pass rates over all steps; of a run's folder every step is read first."""
    from ..index.queries import hardest_prompts

    _read_all(adapter)
    prompts = hardest_prompts(adapter._open(), adapter._run(), limit)
    if as_json:
        yield from map(dump, prompts)
        return
    width = screen_width()
    yield f"{plural(len(prompts), 'prompt')}, hardest first, by the pass rate over all steps"
    yield cut(f"  {'prompt':>6}  {'key':12}  {'split':5}  {'scored':>6}  {'pass rate':>9}  preview", width)
    for prompt in prompts:
        names = f"{prompt['prompt_id']:6}  {cell(prompt['prompt'][:12], 12)}  {cell(prompt['split'], 5)}"
        yield cut(f"  {names}  {prompt['scored']:6,}  {decimal(prompt['pass_rate']):>9}  {prompt['preview']}", width)


def _read_all(adapter: IndexedAdapter) -> None:
    for step in adapter.list_steps():
        adapter.ensure_step_indexed(step)
