"""The prompts of a run with the lowest or the highest pass rates over all steps, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..amounts import plural
from .amiss import gone_lines
from .columns import cell, cut, decimal, screen_width, width_of, wrapped
from .covered import covered, rule_of
from .over_steps import hint, read_all
from .previews import told_apart
from .visible import json_line, printable

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..index.lists import Among


def ranked(adapter: IndexedAdapter, limit: int, is_easiest: bool, among: Among, as_json: bool) -> Iterator[str]:
    """Yield the prompts with the lowest, or highest, pass rates over all steps; of a folder every step is read first.

    Raises SourceError where no prompt is scored.
    """
    from ..index.ranked import ranked_prompts
    from ..sources.base import SourceError

    read_all(adapter, among)
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
    yield from hint(f"--prompt N shows one with its best and worst trajectory{lists_all}", width)


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
