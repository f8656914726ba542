"""What an export is of, in words: the step, prompt or run that its filters name, and the filters beside these."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rltracer_sqlite.amounts import LONGEST_NAME, shortened_name

from .selection import Pair, in_words

NUMBER = re.compile(r"-?[0-9]{1,19}")


def subject(chosen: Sequence[Pair], runs: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return what an export is of, such as "step 8 of the run demo", and its other filters in words.

    `runs` are the names of runs by their numbers as text.
    """
    given = numbers(chosen)
    parts = {
        ("prompt_group_id",): _one("prompt group", given.get("prompt_group_id")),
        ("prompt_id",): _one("prompt", given.get("prompt_id")),
        ("step",): _one("step", given.get("step")),
        ("step__gte", "step__lte"): _span(given.get("step__gte"), given.get("step__lte")),
        ("run_id",): _run(given.get("run_id"), runs),
    }
    said = {names: words for names, words in parts.items() if words}
    told = {name for names in said for name in names if name in given}
    others = [in_words(pair) or "=".join(pair) for pair in chosen if pair[0] not in told]
    return " of ".join(said.values()) or "all runs", others


def numbers(chosen: Sequence[Pair]) -> dict[str, str]:
    """Return the filters that stand there once and ask for a number, or for nothing."""
    named = [name for name, _ in chosen]
    return {name: value for name, value in chosen if named.count(name) == 1 and (NUMBER.fullmatch(value) or not value)}


def _one(what: str, number: str | None) -> str:
    return f"{what} {number}" if number else ""


def _span(first: str | None, last: str | None) -> str:
    if first and last:
        return f"step {first}" if first == last else f"steps {first} to {last}"
    return f"steps from {first} on" if first else f"steps up to {last}" if last else ""


def _run(number: str | None, runs: Mapping[str, str]) -> str:
    if not number:
        return ""
    name = runs.get(number)
    return f"run {number}" if name is None else f"the run {shortened_name(name, LONGEST_NAME)}"
