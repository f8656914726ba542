"""What of a run a list in the terminal covers: said above the list, or instead of it where there is nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ..amounts import plural, ranges
from .score_columns import any_over
from .visible import in_line

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..index.among import Among

MOST_SPLITS = 4


def covered(adapter: IndexedAdapter, among: Among) -> str:
    """Return the splits that a list has, and the environment where it is of one: "splits eval, train"."""
    from ..index.lists import splits_of

    names = [str(split) for split in splits_of(adapter.connection, adapter.run_id, among) if split is not None]
    return in_words(names, among)


def in_words(splits: list[str], among: Among) -> str:
    """Return these splits, and the environment that is asked for, as the end of a caption; "" for neither."""
    told = ", ".join([*splits[:MOST_SPLITS], *(["…"] if len(splits) > MOST_SPLITS else [])])
    of_splits = [f"split{'s' if len(splits) > 1 else ''} {told}"] if splits else []
    return "".join(f"; {part}" for part in [*of_splits, *([f"env {among.env}"] if among.env is not None else [])])


def scoring(adapter: IndexedAdapter, facts: Sequence[dict[str, Any]]) -> str:
    """Return what the pass rates and mean rewards of these rows are over: the success rule, how many trajectories have
    no score, and in a second line how many have a reward, where these are not those with a score.
    """
    envs = {fact["env"] for fact in facts} if all("env" in fact for fact in facts) else None
    return "\n".join([f"Success: {rule_of(adapter, envs=envs or None)}; {unscored(facts)}.", *_rewarded(facts)])


def _rewarded(facts: Sequence[dict[str, Any]]) -> list[str]:
    """Return over how many trajectories the mean rewards of rows are; [] where the pass rates are over as many."""
    if not any_over(facts):
        return []
    of_all, rewarded = (sum(fact[name] or 0 for fact in facts) for name in ("trajectories", "rewarded"))
    counted = plural(of_all, "trajectory")
    return [f"Mean reward: over {f'the {rewarded:,} of {counted} that have one' if rewarded < of_all else counted}."]


def rule_of(adapter: IndexedAdapter, in_brackets: bool = False, envs: Collection[str | None] | None = None) -> str:
    """Return the success rule of a run as it is written, and which rewards it is on where these are several.

    `envs` are the environments of what it is said of, where it is not of the whole run.
    """
    from ..index.queries import runs
    from ..reward_parts import reward_parts, rule_in_words

    run = next(run for run in runs(adapter.connection) if run.id == adapter.run_id)
    parts = reward_parts(adapter.connection, run.id, run.success_path, envs)
    return in_line(rule_in_words(run.success, parts, in_brackets))


def path_of_rule(adapter: IndexedAdapter) -> str:
    """Return the path of the recorded value that the success rule of a run is on."""
    from ..index.queries import runs

    return in_line(next(run.success_path for run in runs(adapter.connection) if run.id == adapter.run_id))


def unscored(facts: Sequence[dict[str, Any]]) -> str:
    """Return how many trajectories of these rows the rule leaves unscored."""
    from ..passrates import unscored_words

    of_all, scored = (sum(fact[name] or 0 for fact in facts) for name in ("trajectories", "scored"))
    return unscored_words(of_all, scored)


def refuse_nothing(adapter: IndexedAdapter, among: Among, step: int | None = None) -> None:
    """Raise SourceError, which says what the run has, where it has nothing of what is asked for."""
    from ..index.contents import nothing_there
    from ..sources.base import SourceError

    if among.is_all:
        return
    asked = among.filters | ({} if step is None else {"first": step, "last": step})
    sentence = nothing_there(adapter.connection, adapter.run_id, **asked)
    if sentence is not None:
        raise SourceError(sentence)


def refuse_no_step(adapter: IndexedAdapter, among: Among) -> None:
    """Raise SourceError, which says which steps the run has, where none of them is asked for."""
    from ..index.elsewhere import steps_in_words
    from ..sources.base import SourceError

    steps = adapter.list_steps() if among.is_of_steps else []
    if any(map(among.has_step, steps)) or not among.is_of_steps:
        return
    asked = "trajectory without a step" if among.is_without_step else steps_in_words(among.first, among.last)
    known = ranges(step for step in steps if step is not None)
    raise SourceError(f"The run has no {asked}; {f'it has steps {known}' if known else 'its trajectories have none'}.")
