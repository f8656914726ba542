"""A prompt over all steps of a run in the terminal, step by step, with its best and its worst trajectory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .amiss import gone_lines
from .chosen_prompts import chosen
from .columns import cell, cut, decimal, identity, screen_width, step_words, width_of, wrapped
from .covered import refuse_nothing, scoring
from .report import writes_to_terminal
from .score_columns import ScoreColumns
from .visible import json_line, printable

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..index.among import Among


def over_steps(adapter: IndexedAdapter, asked: str, among: Among, as_json: bool) -> Iterator[str]:
    """Yield the groups of a prompt in the order of their steps; of a run's folder every step is read first."""
    from ..index.over_steps import groups_of_prompts

    read_all(adapter, among)
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
    yield from hint("--trajectory ID shows one, --step N with --prompt all of a step", screen_width())


def _prompt_lines(groups: list[dict[str, Any]], scored: str, width: int) -> Iterator[str]:
    """Yield the lines of one prompt: its steps, and then the best and the worst trajectory of all of them."""
    prompt = groups[0]
    yield cut(f"prompt {prompt['prompt_id']}  {prompt['prompt'][:12]}  {prompt['preview']}", width)
    yield from wrapped(printable(scored), width)
    scores = ScoreColumns.of(groups)
    head = f"  {'':9}  {'split':5}  {scores.head()}  "
    best_head, *ends = _ends(groups, width - width_of(head))
    yield cut(f"{head}{best_head}", width)
    for group, end in zip(groups, ends, strict=True):
        place = f"{step_words(group['step']):9}  {cell(group['split'], 5)}"
        yield cut(f"  {place}  {scores.cells(group)}  {end}", width)
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
        count, reward, one = ends[0].same, decimal(ends[0].reward), ends[0].trajectory
        all_are = f"all {count:,} rewards are {reward}, as" if count > 1 else f"the only reward is {reward},"
        yield f"no best or worst of all: {all_are} of trajectory {one}"
        return
    for which, end in zip(("best", "worst"), ends, strict=True):
        split = "" if end.split is None else f", {end.split}"
        reward = f"{decimal(end.reward)}{end.others}"
        yield f"{which} of all: trajectory {end.trajectory}, reward {reward}, {step_words(end.step)}{split}"


def read_all(adapter: IndexedAdapter, among: Among) -> None:
    """Read what is new in the chosen steps of a run's folder. Raises SourceError where nothing is among it."""
    for step in filter(among.has_step, adapter.list_steps()):
        adapter.ensure_step_indexed(step)
    refuse_nothing(adapter, among)


def hint(text: str, width: int) -> Iterator[str]:
    """Yield what may be asked next, for a person at a terminal."""
    if writes_to_terminal():
        yield from wrapped(text, width)
