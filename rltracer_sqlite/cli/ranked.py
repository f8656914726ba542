"""The prompts of a run with the lowest or the highest pass rates, over all steps or some, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..amounts import plural
from ..scores import MOST_RANKED
from ..unscored import another_rule, lack
from .amiss import gone_lines
from .columns import cell, cut, decimal, identity, screen_width, width_of, wrapped
from .covered import covered, path_of_rule, rule_of
from .numbers import UNNUMBERED
from .over_steps import hint, read_all
from .previews import told_apart
from .visible import json_line, printable

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..index.among import Among
    from ..index.ranked import Ends, Unscored

SHORT_KEY = 12  # characters of a key
ROOM_FOR_KEY = 30  # columns of a preview, for which the key gives way: the number names a prompt as well


def ranked(adapter: IndexedAdapter, limit: int, is_easiest: bool, among: Among, as_json: bool) -> Iterator[str]:
    """Yield the prompts with the lowest, or highest, pass rates over the chosen steps, each with its best and worst
    trajectory; of a folder these steps are read first.

    UNNUMBERED they are as many as on a run's page, and none of the hardest always passed, none of the easiest
    never did. Raises SourceError where no prompt is scored.
    """
    from ..index.ranked import ANY, EASY, HARD, ranked_prompts, with_ends
    from ..sources.base import SourceError

    read_all(adapter, among)
    where = (adapter.connection, adapter.run_id)
    places = ANY
    if limit == UNNUMBERED:
        limit, places = MOST_RANKED, EASY if is_easiest else HARD
    prompts, ends = ranked_prompts(*where, limit, among, is_easiest, places)
    count = ends.listed
    if not count:
        raise SourceError(_none_scored(adapter, among))
    prompts = with_ends(*where, prompts, among)
    if as_json:
        yield from map(json_line, prompts)
        return
    width, order = screen_width(), "easiest" if is_easiest else "hardest"
    yield from _captions(adapter, len(prompts), ends, order, among)
    lists_all = f"--{order} {count} lists all"
    if not prompts:
        yield "No scored prompt ever passed." if is_easiest else "Every scored prompt always passed."
        yield from hint(lists_all, width)
        return
    yield from _table(prompts, width)
    yield from gone_lines(adapter, width, among, prompts=[prompt["prompt_id"] for prompt in prompts])
    shows = "--trajectory ID shows the best or the worst, --prompt N a prompt by its steps"
    yield from hint(f"{shows}; {lists_all}" if len(prompts) < count else shows, width)


def _captions(adapter: IndexedAdapter, listed: int, ends: Ends, order: str, among: Among) -> Iterator[str]:
    """Yield how many prompts are listed of which, how many never passed and always did, and how many have no score."""
    caption = f"{_counted(listed, ends.listed)}, {order} first, {_steps(among)}{covered(adapter, among)}"
    passed = f"{ends.never_passed:,} never passed, {ends.always_passed:,} always did"
    yield from wrapped(printable(f"{caption}; {passed}"), screen_width())
    others, command = _unscored(adapter, among) if ends.prompts > ends.listed else ("every prompt is scored", "")
    way = " Set another rule with:" if command else ""
    yield from wrapped(printable(f"Success: {rule_of(adapter)}; {others}.{way}"), screen_width())
    if command:
        yield f"  {printable(command)}"


def _counted(listed: int, count: int) -> str:
    counted = plural(count, "scored prompt")
    return counted if listed == count else f"{listed:,} of {counted}"


def _table(prompts: Sequence[dict[str, Any]], width: int) -> Iterator[str]:
    ends = [_ends(prompt) for prompt in prompts]
    one = max(len("worst"), *(len(cell) for both in ends for cell in both))
    head = f"{'split':5}  {'scored':>6}  {'pass rate':>9}  {'best':>{one}}  {'worst':>{one}}  "
    key_head = f"{'key':{SHORT_KEY}}  "
    has_key = width - width_of(f"  prompt  {key_head}{head}") >= ROOM_FOR_KEY
    head = f"  prompt  {key_head if has_key else ''}{head}"
    yield cut(f"{head}preview", width)
    previews = told_apart([prompt["preview"] for prompt in prompts], width - width_of(head))
    for prompt, (best, worst), preview in zip(prompts, ends, previews, strict=True):
        key = f"{cell(prompt['prompt'][:SHORT_KEY], SHORT_KEY)}  " if has_key else ""
        names = f"{prompt['prompt_id']:6}  {key}{cell(prompt['split'], 5)}"
        rates = f"{prompt['scored']:6,}  {decimal(prompt['pass_rate']):>9}"
        yield cut(f"  {names}  {rates}  {best:>{one}}  {worst:>{one}}  {preview}", width)


def _ends(prompt: dict[str, Any]) -> tuple[str, str]:
    """Return the best and the worst of a row; of equal rewards one to look at, and that it is as good as the others."""
    worst = "equal" if prompt["worst"] is None and (prompt["rewarded"] or 0) > 1 else identity(prompt["worst"])
    return identity(prompt["highest"]), worst


def _steps(among: Among) -> str:
    """Return which steps a list is over."""
    from ..index.elsewhere import steps_in_words

    if among.is_without_step:
        return "without a step"
    if not among.is_of_steps:
        return "over all steps"
    return f"{'in' if among.first == among.last else 'over'} {steps_in_words(among.first, among.last)}"


def _none_scored(adapter: IndexedAdapter, among: Among) -> str:
    """Return the sentence for prompts none of which is scored, and where some are that are not asked for."""
    from ..index.elsewhere import SCORED, Groups, asked_for
    from ..index.ranked import unscored_prompts

    asked, by_rule = among.filters, f"by the run's success rule, {rule_of(adapter)}"
    if ways := Groups(adapter.connection, [adapter.run_id], asked, SCORED).elsewhere():
        return f"No prompt{asked_for(asked)} is scored {by_rule}; only those of {', and of '.join(ways)} are."
    found = unscored_prompts(adapter.connection, adapter.run_id, among)
    all_of_them = "the only prompt" if found.prompts == 1 else f"the {found.prompts:,} prompts"
    why = f": {lack(found, all_of_them, path_of_rule(adapter))}" if found.prompts else ""
    return f"No prompt{asked_for(asked)} is scored {by_rule}{why}. {_other_rule(adapter, found)} sets another rule."


def _unscored(adapter: IndexedAdapter, among: Among) -> tuple[str, str]:
    """Return how many prompts the rule does not score and what they lack, and the command for a rule on what they have.

    "" for the command where they have no reward.
    """
    from ..index.ranked import unscored_prompts

    found = unscored_prompts(adapter.connection, adapter.run_id, among)
    lacks = lack(found, "it" if found.prompts == 1 else "they", path_of_rule(adapter))
    told = f"{plural(found.prompts, 'prompt')} not scored: {lacks}"
    return told, _other_rule(adapter, found) if found.rewarded else ""


def _other_rule(adapter: IndexedAdapter, found: Unscored) -> str:
    return another_rule(adapter.connection, adapter.run_id, adapter.index, found.rewarded > 0)
