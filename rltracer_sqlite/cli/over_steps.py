"""Prompts over all steps of a run in the terminal: one of them step by step, the hardest and the easiest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..amounts import plural
from .amiss import gone_lines
from .columns import cell, cut, decimal, screen_width, width_of, wrapped
from .covered import (
    any_over,
    any_unscored,
    counts,
    counts_head,
    covered,
    refuse_nothing,
    reward,
    reward_head,
    rule_of,
    scoring,
)
from .previews import told_apart
from .prompts import chosen, identity, step_words
from .report import writes_to_terminal
from .visible import json_line, printable

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..index.lists import Among


def over_steps(adapter: IndexedAdapter, asked: str, among: Among, as_json: bool) -> Iterator[str]:
    """Yield the groups of a prompt in the order of their steps; of a run's folder every step is read first."""
    from ..index.over_steps import groups_of_prompts

    _read_all(adapter, among)
    meant = chosen(adapter, asked, among)
    of_prompts = groups_of_prompts(adapter.connection, adapter.run_id, meant.numbers, among)
    groups = [group for group in of_prompts if group["prompt"] in meant.keys]
    if as_json:
        yield from map(json_line, groups)
        return
    for number in dict.fromkeys(group["prompt_id"] for group in groups):
        of_prompt = [group for group in groups if group["prompt_id"] == number]
        yield from _prompt_lines(of_prompt, scoring(adapter, of_prompt), screen_width())
    yield from gone_lines(adapter, screen_width(), among, prompts=meant.numbers)
    yield from _hint("--trajectory ID shows one, --step N with --prompt all of a step", screen_width())


def _prompt_lines(groups: list[dict[str, Any]], scored: str, width: int) -> Iterator[str]:
    """Yield the lines of one prompt: its steps, and then the best and the worst trajectory of all of them."""
    prompt = groups[0]
    yield cut(f"prompt {prompt['prompt_id']}  {prompt['prompt'][:12]}  {prompt['preview']}", width)
    yield from wrapped(printable(scored), width)
    has_unscored, has_over = any_unscored(groups), any_over(groups)
    head = f"  {'':9}  {'split':5}  {counts_head(has_unscored)}  {'pass rate':>9}  {reward_head(has_over)}  "
    best_head, *ends = _ends(groups, width - width_of(head))
    yield cut(f"{head}{best_head}", width)
    for group, end in zip(groups, ends, strict=True):
        rates = f"{decimal(group['pass_rate']):>9}  {reward(group, has_over)}"
        place = f"{step_words(group['step']):9}  {cell(group['split'], 5)}"
        yield cut(f"  {place}  {counts(group, has_unscored)}  {rates}  {end}", width)
    for line in _end_lines(groups):
        yield from wrapped(printable(f"  {line}"), width)


def _ends(groups: list[dict[str, Any]], room: int) -> Iterator[str]:
    """Yield the best and the worst of each row, their heads first, or why it has neither, shorter where `room` asks."""
    from ..index.over_steps import why_neither

    is_short = max(len(why_neither(group)) for group in groups) > room
    why = [why_neither(group, is_short) for group in groups]
    ids = (len(identity(group[which])) for group in groups for which in ("best", "worst"))
    one = max(*ids, len("worst"), (max(map(len, why)) - 1) // 2)
    yield f"{'best':>{one}}  {'worst':>{one}}"
    for group, words in zip(groups, why, strict=True):
        both = "  ".join(f"{identity(group[which]):>{one}}" for which in ("best", "worst"))
        yield f"{words:>{2 * one + 2}}" if words else both


def _end_lines(groups: list[dict[str, Any]]) -> Iterator[str]:
    """Yield which trajectory of all steps is the best and which the worst, and how many are as good or as bad."""
    from ..index.over_steps import ends_of

    ends = ends_of(groups)
    if ends is None:
        return
    if ends[0].reward == ends[1].reward:
        count, reward = ends[0].same, decimal(ends[0].reward)
        yield f"no best or worst of all: {f'all {count:,} rewards are' if count > 1 else 'the only reward is'} {reward}"
        return
    for which, end in zip(("best", "worst"), ends, strict=True):
        split = "" if end.split is None else f", {end.split}"
        reward = f"{decimal(end.reward)}{end.others}"
        yield f"{which} of all: trajectory {end.trajectory}, reward {reward}, {step_words(end.step)}{split}"


def ranked(adapter: IndexedAdapter, limit: int, is_easiest: bool, among: Among, as_json: bool) -> Iterator[str]:
    """Yield the prompts with the lowest, or highest, pass rates over all steps; of a folder every step is read first.

    Raises SourceError where no prompt is scored.
    """
    from ..index.over_steps import ranked_prompts
    from ..sources.base import SourceError

    _read_all(adapter, among)
    prompts, count, of_all = ranked_prompts(adapter.connection, adapter.run_id, limit, among, is_easiest)
    if not prompts:
        raise SourceError(_none_scored(adapter, among))
    if as_json:
        yield from map(json_line, prompts)
        return
    width = screen_width()
    counted = plural(count, "scored prompt")
    listed = counted if len(prompts) == count else f"{len(prompts):,} of {counted}"
    order = "easiest" if is_easiest else "hardest"
    caption = f"{listed}, {order} first, over all steps{covered(adapter, among)}"
    yield from wrapped(printable(caption), width)
    yield from wrapped(printable(_unscored(adapter, count, of_all)), width)
    head = f"  {'prompt':>6}  {'key':12}  {'split':5}  {'scored':>6}  {'pass rate':>9}  "
    yield cut(f"{head}preview", width)
    previews = told_apart([prompt["preview"] for prompt in prompts], width - width_of(head))
    for prompt, preview in zip(prompts, previews, strict=True):
        names = f"{prompt['prompt_id']:6}  {cell(prompt['prompt'][:12], 12)}  {cell(prompt['split'], 5)}"
        yield cut(f"  {names}  {prompt['scored']:6,}  {decimal(prompt['pass_rate']):>9}  {preview}", width)
    yield from gone_lines(adapter, width, among, prompts=[prompt["prompt_id"] for prompt in prompts])
    lists_all = f"; --{order} {count} lists all" if len(prompts) < count else ""
    yield from _hint(f"--prompt N shows one with its best and worst trajectory{lists_all}", width)


def _none_scored(adapter: IndexedAdapter, among: Among) -> str:
    """Return the sentence for prompts none of which is scored, and where some are that are not asked for."""
    from ..index.elsewhere import SCORED, Groups, asked_for

    asked, by_rule = {"split": among.split, "env": among.env}, f"by the run's success rule, {rule_of(adapter)}"
    if ways := Groups(adapter.connection, [adapter.run_id], asked, SCORED).elsewhere():
        return f"No prompt{asked_for(asked)} is scored {by_rule}; only those of {', and of '.join(ways)} are."
    return f"No prompt is scored {by_rule}. rltracer success sets another one."


def _unscored(adapter: IndexedAdapter, scored: int, prompts: int) -> str:
    """Return how many prompts the rule scores, and how another rule is set where it leaves some out."""
    if scored == prompts:
        return f"Success: {rule_of(adapter)}; every prompt is scored."
    have = "has" if prompts - scored == 1 else "have"
    said = f"{scored:,} of {plural(prompts, 'prompt')} are scored; {prompts - scored:,} {have} no score"
    return f"{said} by {rule_of(adapter)} (rltracer success sets another rule)."


def _read_all(adapter: IndexedAdapter, among: Among) -> None:
    for step in adapter.list_steps():
        adapter.ensure_step_indexed(step)
    refuse_nothing(adapter, among)


def _hint(text: str, width: int) -> Iterator[str]:
    """Yield what may be asked next, for a person at a terminal."""
    if writes_to_terminal():
        yield from wrapped(text, width)
