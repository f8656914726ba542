"""The prompts of a step in the terminal, and the trajectories of one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ..amounts import plural
from ..outcomes import outcome
from ..unrecorded import is_chosen
from .amiss import gone_lines
from .chosen_prompts import chosen
from .columns import cell, cut, decimal, identity, screen_width, width_of, wrapped
from .covered import in_words, refuse_nothing, scoring
from .previews import SHORTEST_PREVIEW, told_apart
from .score_columns import ScoreColumns, count
from .visible import json_line, printable

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..index.among import Among

SHORT_KEY = 8  # characters of a key in the lists of a step


def prompts_of_step(adapter: IndexedAdapter, step: int | None, among: Among, as_json: bool) -> Iterator[str]:
    """Yield a line per prompt of a step, which is read first where it is not indexed. Raises SourceError for none."""
    groups, width = _prompts(adapter, step, among), screen_width()
    if not groups:
        yield from _say_nothing(adapter, step, width, as_json)
        return
    if as_json:
        for key, preview, fact in groups:
            yield json_line({"step": step, "prompt": key, **fact, "preview": preview})
        return
    within = _within(adapter, step)
    splits = dict.fromkeys(fact["split"] for _, _, fact in groups if fact["split"] is not None)
    said = f"{plural(len(groups), 'prompt')}{within}, in the order they were read{in_words(list(splits), among)}"
    yield from wrapped(printable(said), width)
    facts = [fact for _, _, fact in groups]
    yield from wrapped(printable(scoring(adapter, facts)), width)
    scores = ScoreColumns.of(facts)
    head = f"{'split':5}  {scores.head()}  "
    # The number names a prompt as well as its key does; nothing else tells what it asks.
    room = width - width_of(f"  prompt  {head}") - SHORTEST_PREVIEW
    key_width = SHORT_KEY if room >= SHORT_KEY + 2 else 0
    head = f"  {'prompt':>6}{_column('key', key_width)}  {head}"
    yield cut(f"{head}preview", width)
    previews = told_apart([preview for _, preview, _ in groups], width - width_of(head))
    for (key, _, fact), preview in zip(groups, previews, strict=True):
        names = f"{identity(fact['prompt_id']):>6}{_column(key, key_width)}  {cell(fact['split'], 5)}"
        yield cut(f"  {names}  {scores.cells(fact)}  {preview}", width)
    yield from gone_lines(adapter, width, among, step)


def _within(adapter: IndexedAdapter, step: int | None) -> str:
    """Return which prompts of a run those of a step are; "" where they are all, as no step is recorded."""
    if step is not None:
        return f" in step {step}"
    return "" if adapter.list_steps() == [None] else " without a step"


def _say_nothing(adapter: IndexedAdapter, step: int | None, width: int, as_json: bool) -> Iterator[str]:
    """Yield why there is no prompt in a step; beside JSON it is said on stderr."""
    from ..browse.outcome import why_nothing_is_read
    from ..browse.steps import step_key
    from ..index.queries import step_scores
    from ..index.states import failed_steps

    where = (adapter.connection, adapter.run_id)
    is_failed = any(failed == step for failed, _ in failed_steps(*where))
    if step is not None and step_scores(*where, step) is None and not adapter.refreshes and not is_failed:
        why: str | None = f"Step {step} has not been read yet: rltracer-index reads it."
    else:
        why = why_nothing_is_read(*where, step_key(step))
    lines = wrapped(printable(why or f"0 prompts{_within(adapter, step)}."), width)
    if not as_json:
        yield from lines
        return
    for line in lines:
        click.echo(line, err=True)


def _column(text: str, width: int) -> str:
    return f"  {cell(text[:width], width)}" if width else ""


def trajectories_of(
    adapter: IndexedAdapter, step: int | None, prompt: str, among: Among, as_json: bool
) -> Iterator[str]:
    """Yield the trajectories of the prompts of a step that are meant, the best reward first.

    Raises SourceError where there is no such prompt.
    """
    from ..index.elsewhere import asked_for
    from ..sources.base import SourceError

    listed = [{"prompt": key, "preview": preview, **fact} for key, preview, fact in _prompts(adapter, step, among)]
    meant = chosen(adapter, prompt, among, step).keys
    groups = [group for group in listed if group["prompt"] in meant]
    if not groups and step is None:
        with_filters = asked_for({"split": among.split, "env": among.env})
        raise SourceError(f"Prompt {prompt} has no trajectory without a step{with_filters}.")
    width = screen_width()
    for group in groups:
        if not as_json:
            split = "" if group["split"] is None else f"  {group['split']}"
            yield cut(f"prompt {group['prompt_id']}  {group['prompt'][:12]}{split}  {group['preview']}", width)
            yield from wrapped(printable(scoring(adapter, [group])), width)
            head = f"  {'id':>7}  {'outcome':>8}  {'reward':>8}  {'turns':>5}  {'tools':>5}  stopped"
            yield cut(head, width)
        for row in _best_first(adapter, step, group["prompt"], among):
            if as_json:
                names = ("id", "uid", "split", "env", "success", "reward", "turns", "stop_condition")
                yield json_line({key: row.get(key) for key in names})
            else:
                yield _row(row)
    if not as_json:
        numbers = [group["prompt_id"] for group in groups]
        yield from gone_lines(adapter, width, among, step, prompts=numbers)


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
    wanted = [row for row in rows if is_chosen(row["env"], among.env)]
    return sorted(wanted, key=lambda row: (row["reward"] is None, -(row["reward"] or 0.0)))


def _row(row: dict[str, Any]) -> str:
    stopped = row["error_type"] or row["stop_condition"] or "–"
    numbers = f"{decimal(row['reward']):>8}  {row['turns']:5}  {count(row['tool_calls']):>5}"
    return cut(f"  {row['id']:7}  {outcome(row['success']):>8}  {numbers}  {stopped}", screen_width())
