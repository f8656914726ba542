"""The prompts of a step in the terminal, and the trajectories of one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ..amounts import plural, ranges
from .columns import cell, cut, decimal, screen_width, wrapped
from .covered import in_words, refuse_nothing
from .visible import json_line, printable

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..index.lists import Among

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


def no_prompt(adapter: IndexedAdapter, asked: str, among: Among, step: int | None = None) -> str:
    """Return the sentence for a prompt that a run, or one of its steps, has not: where it is, or which there are."""
    from ..index.lists import groups_of_prompts, numbers_of_prompts

    where = "The run" if step is None else f"Step {step}"
    said = f"{where} has no prompt {asked!r}, by its number or the beginning of its key"
    found = groups_of_prompts(adapter.connection, adapter.run_id, asked)
    if found:
        steps = {group["step"] for group in found if group["step"] is not None}
        splits = {group["split"] for group in found if group["split"] is not None}
        in_steps = f" in {'step' if len(steps) == 1 else 'steps'} {ranges(steps)}" if steps else ""
        of_splits = f" of split {', '.join(sorted(splits))}" if splits and among.split is not None else ""
        return f"{said}; it is{in_steps}{of_splits}."
    numbers = numbers_of_prompts(adapter.connection, adapter.run_id, step, among)
    return f"{said}; it has {plural(len(numbers), 'prompt')}" + (f", {ranges(numbers)}." if numbers else ".")


def step_words(step: int | None) -> str:
    """Return a step as the lists say it."""
    return "no step" if step is None else f"step {step}"


def identity(number: int | None) -> str:
    """Return the number of a row, or a dash where there is none."""
    return "–" if number is None else str(number)


def prompts_of_step(adapter: IndexedAdapter, step: int | None, among: Among, as_json: bool) -> Iterator[str]:
    """Yield a line per prompt of a step, which is read first where it is not indexed. Raises SourceError for none."""
    groups, width = _prompts(adapter, step, among), screen_width()
    if as_json:
        for key, preview, fact in groups:
            yield json_line({"step": step, "prompt": key, **fact, "preview": preview})
        return
    within = "" if step is None else f" in step {step}"
    splits = dict.fromkeys(fact["split"] for _, _, fact in groups if fact["split"] is not None)
    yield from wrapped(printable(f"{plural(len(groups), 'prompt')}{within}{in_words(list(splits), among)}"), width)
    head = f"{'split':5}  {'rollouts':>8}  {'pass rate':>9}  {'reward':>7}  preview"
    yield cut(f"  {'prompt':>6}  {'key':{SHORT_KEY}}  {head}", width)
    for key, preview, fact in groups:
        rates = f"{decimal(fact['pass_rate']):>9}  {decimal(fact['reward_mean']):>7}"
        names = f"{identity(fact['prompt_id']):>6}  {cell(key[:SHORT_KEY], SHORT_KEY)}  {cell(fact['split'], 5)}"
        yield cut(f"  {names}  {fact['trajectories']:8,}  {rates}  {preview}", width)


def trajectories_of(
    adapter: IndexedAdapter, step: int | None, prompt: str, among: Among, as_json: bool
) -> Iterator[str]:
    """Yield the trajectories of the prompts of a step that are meant, the best reward first.

    Raises SourceError where there is no such prompt.
    """
    from ..sources.base import SourceError

    listed = [{"prompt": key, "preview": preview, **fact} for key, preview, fact in _prompts(adapter, step, among)]
    groups = chosen(prompt, listed)
    if not groups:
        raise SourceError(no_prompt(adapter, prompt, among, step))
    width = screen_width()
    for group in groups:
        if not as_json:
            split = "" if group["split"] is None else f"  {group['split']}"
            yield cut(f"prompt {group['prompt_id']}  {group['prompt'][:12]}{split}  {group['preview']}", width)
            head = f"  {'id':>7}  {'success':>7}  {'reward':>8}  {'turns':>5}  {'tools':>5}  stopped"
            yield cut(head, width)
        for row in _best_first(adapter, step, group["prompt"], among):
            if as_json:
                names = ("id", "uid", "split", "env", "success", "reward", "turns", "stop_condition")
                yield json_line({key: row.get(key) for key in names})
            else:
                yield _row(row)


def _prompts(adapter: IndexedAdapter, step: int | None, among: Among) -> list[tuple[str, str, dict[str, Any]]]:
    """Return key, preview and facts of the prompts of a step, which is read first. Raises SourceError for none."""
    from ..index.lists import group_facts
    from ..model import RLTracer
    from ..sources.base import SourceError

    try:
        groups = RLTracer(adapter).step(step).prompts()
    except KeyError as error:
        said = str(error.args[0])
        raise SourceError(f"{said[:1].upper()}{said[1:]}.") from None
    refuse_nothing(adapter, among, step)
    facts = group_facts(adapter.connection, adapter.run_id, step, among)
    return [(group.key, group.preview, facts[group.key]) for group in groups if group.key in facts]


def _best_first(adapter: IndexedAdapter, step: int | None, key: str, among: Among) -> list[dict[str, Any]]:
    """Return the rows of a group's trajectories in the order of their rewards, as on the group's page."""
    from ..index.queries import trajectory_row

    found = adapter.list_trajectory_ids(step, key)
    rows = [row for number in found if (row := trajectory_row(adapter.connection, number))]
    wanted = [row for row in rows if among.env in (None, row["env"])]
    return sorted(wanted, key=lambda row: (row["reward"] is None, -(row["reward"] or 0.0)))


def _row(row: dict[str, Any]) -> str:
    success = {1: "yes", 0: "no", None: "–"}[row["success"]]
    stopped = row["error_type"] or row["stop_condition"] or "–"
    numbers = f"{decimal(row['reward']):>8}  {row['turns']:5}  {row['tool_calls']:5}"
    return cut(f"  {row['id']:7}  {success:>7}  {numbers}  {stopped}", screen_width())
