"""The prompts of a run in the terminal: those of a step, one of them, one over all steps, and the hardest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ..amounts import plural, ranges
from . import json_line, printable
from .columns import cell, cut, decimal, screen_width
from .report import writes_to_terminal

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..model import PromptGroup


SHORT_KEY = 8  # characters of a key in the lists of a step


def chosen(asked: str, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the groups of the prompt of this number, or of those whose keys begin with it.

    A number comes before a key that begins with the same digits; which of them is meant is then said on stderr.
    """
    from ..index.queries import whole_number

    number = whole_number(asked)
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
    groups = chosen(asked, groups_of_prompts(adapter.connection, adapter.run_id, asked))
    if not groups:
        raise SourceError(f"The run has no prompt {asked!r}, by its number or the beginning of its key.")
    if as_json:
        yield from map(json_line, groups)
        return
    width, prompt = screen_width(), None
    for group in groups:
        if group["prompt_id"] != prompt:
            prompt = group["prompt_id"]
            yield cut(f"prompt {prompt}  {group['prompt'][:12]}  {group['preview']}", width)
            head = f"{'rollouts':>8}  {'pass rate':>9}  {'reward':>7}  {'best':>7}  {'worst':>7}"
            yield cut(f"  {'':9}  {'split':5}  {head}", width)
        step = "no step" if group["step"] is None else f"step {group['step']}"
        rates = f"{decimal(group['pass_rate']):>9}  {decimal(group['reward_mean']):>7}"
        ends = f"{_id(group['best']):>7}  {_id(group['worst']):>7}"
        yield cut(f"  {step:9}  {cell(group['split'], 5)}  {group['trajectories']:8,}  {rates}  {ends}", width)
    yield from _hint("--trajectory ID shows one, --step N with --prompt all of a step", width)


def _id(number: int | None) -> str:
    return "–" if number is None else str(number)


def _hint(text: str, width: int) -> Iterator[str]:
    """Yield what may be asked next, for a person at a terminal."""
    if writes_to_terminal():
        yield cut(text, width)


def hardest(adapter: IndexedAdapter, limit: int, as_json: bool) -> Iterator[str]:
    """Yield the prompts with the lowest pass rates over all steps; of a run's folder every step is read first."""
    from ..index.queries import hardest_prompts
    from ..sources.base import SourceError

    _read_all(adapter)
    prompts = hardest_prompts(adapter.connection, adapter.run_id, limit)
    if as_json:
        yield from map(json_line, prompts)
        return
    if not prompts:
        raise SourceError("No prompt is scored by the run's success rule. rltracer success sets another one.")
    width = screen_width()
    yield f"{plural(len(prompts), 'prompt')}, hardest first, by the pass rate over all steps"
    yield cut(f"  {'prompt':>6}  {'key':12}  {'split':5}  {'scored':>6}  {'pass rate':>9}  preview", width)
    for prompt in prompts:
        names = f"{prompt['prompt_id']:6}  {cell(prompt['prompt'][:12], 12)}  {cell(prompt['split'], 5)}"
        yield cut(f"  {names}  {prompt['scored']:6,}  {decimal(prompt['pass_rate']):>9}  {prompt['preview']}", width)
    yield from _hint("--prompt N shows one over the steps, with its best and its worst rollout", width)


def _read_all(adapter: IndexedAdapter) -> None:
    for step in adapter.list_steps():
        adapter.ensure_step_indexed(step)


def prompts_of_step(adapter: IndexedAdapter, step: int, as_json: bool) -> Iterator[str]:
    """Yield the prompts of a step. Raises SourceError where the run has no such step."""
    if not as_json:
        yield from prompt_lines(adapter, step)
        return
    groups = _prompts(adapter, step)
    facts = _group_facts(adapter, step)
    for group in groups:
        counted = {"trajectories": group.count, "preview": group.preview}
        yield json_line({"step": step, "prompt": group.key, **facts.get(group.key, {}), **counted})


def _prompts(adapter: IndexedAdapter, step: int | None) -> list[PromptGroup]:
    from ..model import RLTracer
    from ..sources.base import SourceError

    try:
        return RLTracer(adapter).step(step).prompts()
    except KeyError:
        known = [number for number in adapter.list_steps() if number is not None]
        raise SourceError(f"The run has no step {step}; it has {ranges(known) or 'none'}.") from None


def _group_facts(adapter: IndexedAdapter, step: int | None) -> dict[str, dict[str, Any]]:
    from ..index.queries import group_facts

    return group_facts(adapter.connection, adapter.run_id, step)


def prompt_lines(adapter: IndexedAdapter, step: int | None) -> Iterator[str]:
    """Yield a line per prompt of a step, which is read first where it is not indexed. Raises SourceError for none."""
    groups, width = _prompts(adapter, step), screen_width()
    facts = _group_facts(adapter, step)
    yield plural(len(groups), "prompt") + ("" if step is None else f" in step {step}")
    head = f"{'split':5}  {'rollouts':>8}  {'pass rate':>9}  {'reward':>7}  preview"
    yield cut(f"  {'prompt':>6}  {'key':{SHORT_KEY}}  {head}", width)
    for group in groups:
        fact = facts.get(group.key, {})
        rates = f"{decimal(fact.get('pass_rate')):>9}  {decimal(fact.get('reward_mean')):>7}"
        names = (
            f"{_id(fact.get('prompt_id')):>6}  {cell(group.key[:SHORT_KEY], SHORT_KEY)}  {cell(fact.get('split'), 5)}"
        )
        yield cut(f"  {names}  {group.count:8,}  {rates}  {group.preview}", width)


def trajectories_of(adapter: IndexedAdapter, step: int | None, prompt: str, as_json: bool) -> Iterator[str]:
    """Yield the trajectories of the prompts of a step that are meant, the best reward first.

    Raises SourceError where there is no such prompt.
    """
    from ..sources.base import SourceError

    listed, facts = _prompts(adapter, step), _group_facts(adapter, step)
    numbers = [{"prompt": group.key, "prompt_id": facts.get(group.key, {}).get("prompt_id")} for group in listed]
    keys = {group["prompt"] for group in chosen(prompt, numbers)}
    groups = [group for group in listed if group.key in keys]
    if not groups:
        where = "The run" if step is None else f"Step {step}"
        raise SourceError(
            f"{where} has no prompt {prompt!r}, by its number or the beginning of its key{_elsewhere(adapter, prompt)}."
        )
    for group in groups:
        if not as_json:
            yield cut(f"{group.key[:12]}  {group.preview}", screen_width())
            head = f"  {'id':>7}  {'success':>7}  {'reward':>8}  {'turns':>5}  {'tools':>5}  stopped"
            yield cut(head, screen_width())
        for row in _best_first(adapter, group):
            if as_json:
                yield json_line(
                    {key: row.get(key) for key in ("id", "uid", "success", "reward", "turns", "stop_condition")}
                )
            else:
                yield _row(row)


def _elsewhere(adapter: IndexedAdapter, asked: str) -> str:
    """Return the steps that have a prompt, as the end of a sentence; of a run's folder those that have been read."""
    from ..index.queries import groups_of_prompts

    found = groups_of_prompts(adapter.connection, adapter.run_id, asked)
    steps = {group["step"] for group in found if group["step"] is not None}
    return f"; it is in {'step' if len(steps) == 1 else 'steps'} {ranges(steps)}" if steps else ""


def _best_first(adapter: IndexedAdapter, group: PromptGroup) -> list[dict[str, Any]]:
    """Return the rows of a group's trajectories in the order of their rewards, as on the group's page."""
    from ..index.queries import trajectory_row

    rows = [trajectory_row(adapter.connection, reference.id) or {} for reference in group.trajectories()]
    return sorted(rows, key=lambda row: (row["reward"] is None, -(row["reward"] or 0.0)))


def _row(row: dict[str, Any]) -> str:
    success = {1: "yes", 0: "no", None: "–"}[row["success"]]
    stopped = row["error_type"] or row["stop_condition"] or "–"
    numbers = f"{decimal(row['reward']):>8}  {row['turns']:5}  {row['tool_calls']:5}"
    return cut(f"  {row['id']:7}  {success:>7}  {numbers}  {stopped}", screen_width())
