"""The prompts that a number, a key or a text on the command line means."""

from __future__ import annotations

import json
from shlex import quote
from typing import TYPE_CHECKING

import click

from ..amounts import listed, plural, ranges
from ..arguments import shown
from .columns import cell, cut, screen_width, width_of
from .previews import SHORTEST_PREVIEW, told_apart
from .visible import printable

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..index.among import Among
    from ..index.meant import Meant

MOST_LISTED = 10  # prompts that a text may mean
LONGEST_SPLITS = 20  # columns of the splits of one of them


def chosen(adapter: IndexedAdapter, asked: str, among: Among, step: int | None = None) -> Meant:
    """Return the prompts of a step, or of all steps (None), that are meant by a number, a key or a text.

    Raises SourceError where none is, or where a text is the beginning of several.
    """
    from ..index.meant import TEXT, prompts_meant
    from ..sources.base import SourceError

    meant = prompts_meant(adapter.connection, adapter.run_id, asked, step, among)
    if not meant.prompts:
        raise SourceError(no_prompt(adapter, asked, among, step))
    if meant.by == TEXT and len(meant.numbers) > 1:
        raise SourceError(_several(asked, meant))
    if meant.other_keys:
        others = ", ".join(meant.other_keys[:5])
        kept = f"Prompt {asked} by its number, not by its key ({others}): give more of a key to choose it."
        click.echo(printable(kept), err=True)
    return meant


def _several(asked: str, meant: Meant) -> str:
    """Return the sentence for a text that several prompts begin with, the first of them a line each.

    Where some of those look the same, each has its splits.
    """
    numbers, width = meant.numbers[:MOST_LISTED], screen_width()
    listed = [[prompt for prompt in meant.prompts if prompt["prompt_id"] == number] for number in numbers]
    texts = [prompts[0]["preview"] for prompts in listed]
    names = [f"  {number:{len(str(max(numbers)))}}" for number in numbers]
    if len({cut(text, width - width_of(f"{names[0]}  ")) for text in texts}) < len(texts):
        splits = [", ".join(prompt["split"] or "no split" for prompt in prompts) for prompts in listed]
        longest = min(max(map(width_of, splits)), LONGEST_SPLITS)
        names = [f"{name}  {cell(split, longest)}" for name, split in zip(names, splits, strict=True)]
    previews = told_apart(texts, max(width - width_of(f"{names[0]}  "), SHORTEST_PREVIEW))
    lines = [cut(f"{name}  {preview}", width) for name, preview in zip(names, previews, strict=True)]
    if more := len(meant.numbers) - len(lines):
        lines.append(f"  … and {more:,} more")
    count = plural(len(meant.numbers), "prompt")
    return "\n".join([f"{count} begin with {shown(asked)}: give one by its number, or more of the text.", *lines])


def no_prompt(adapter: IndexedAdapter, asked: str, among: Among, step: int | None = None) -> str:
    """Return the sentence for a prompt that a run, a step, a split or an environment has not: where it is, or which
    there are.
    """
    from ..index.elsewhere import OF_PROMPTS, Groups, asked_for
    from ..index.lists import numbers_of_prompts
    from ..index.meant import NUMBER, prompts_meant, runs_of_prompt
    from ..index.queries import row_number

    connection, run_id = adapter.connection, adapter.run_id
    meant = prompts_meant(connection, run_id, asked)
    named = asked if meant.by == NUMBER else f"{asked!r}, by its number or the beginning of its key or of its text"
    said = f"{'The run' if step is None else f'Step {step}'} has no prompt {named}"
    asked_too = among.filters
    at_step = {} if step is None else {"first": step, "last": step}
    asked_of = {**asked_too, **at_step, "prompts": json.dumps(meant.numbers)}
    if ways := Groups(connection, [run_id], asked_of, OF_PROMPTS).elsewhere():
        only = "" if adapter.refreshes and step is not None else "only "  # steps that were not read may have it too
        return f"{said}{asked_for(asked_too)}; it is {only}in {', and in '.join(ways)}."
    if meant.by == NUMBER and (others := runs_of_prompt(connection, row_number(asked) or 0)):
        which = f"the run{'s' if len(others) > 1 else ''} {listed(others)}"
        return f"{said}; it is in {which}: --run {quote(others[0])}."
    numbers = numbers_of_prompts(connection, run_id, step, among)
    has = f"{asked_for(asked_too)} it has {plural(len(numbers), 'prompt')}"
    return f"{said};{has}" + (f", {ranges(numbers)}." if numbers else ".")
