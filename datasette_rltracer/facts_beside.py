"""The facts, rewards and metrics of two trajectories side by side: which differ, told apart, and which are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rltracer_sqlite.amounts import several
from rltracer_sqlite.comparison import (
    FACTS,
    Measures,
    advantages_apart,
    is_same,
    measures,
    parting,
    policy_versions,
    values_apart,
)
from rltracer_sqlite.trajectory import Trajectory
from rltracer_sqlite.truth import truth_text

from .figures import number
from .text import first_words

LONGEST_VALUE = 80  # characters of a value; the page of its trajectory has all
MOST_DIFFERING = 60  # rewards or metrics that have a line each, as on the page of one trajectory
MOST_SAME = 20
MISSING = "not recorded"

Fact = tuple[str, str, str, bool]  # name, left, right, whether they differ


@dataclass(frozen=True)
class MeasuresBeside:
    """Rewards or metrics: (name, left, right) of those that differ, (name, value) of those that do not, and amounts."""

    title: str
    differing: list[tuple[str, str, str]]
    differing_count: int
    same: list[tuple[str, str]]
    same_count: int


def facts_beside(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[Fact]:
    """Return (name, left, right, whether they differ) of what the index has of either side."""
    found = []
    for column, words in FACTS.items():
        one, other = (_fact(column, row) for row in (left, right))
        if column == "advantage":
            *shown, differs = advantages_apart(number, (left, right))
            if shown != [None, None]:
                found.append((words, shown[0] or MISSING, shown[1] or MISSING, differs))
        elif one is not None or other is not None:
            found.append((words, *_apart(one, other), not is_same(one, other)))
    return found


def _fact(column: str, row: Mapping[str, Any]) -> Any:
    value = row.get(column)
    if column == "truncated":
        return None if value is None else bool(value)
    return policy_versions(row) if column == "policy_version" else value


def expected_beside(one: Trajectory | None, other: Trajectory | None) -> list[Fact]:
    """Return what either side was expected to answer, as `facts_beside` does; nothing where neither records it."""
    left, right = (truth_text(side.metadata.get("truth")) if side else None for side in (one, other))
    return [] if left is None and right is None else [("expected answer", *_apart(left, right), left != right)]


def measures_beside(rows: Sequence[Mapping[str, Any]], read: Sequence[Trajectory | None]) -> list[MeasuresBeside]:
    """Return the named rewards and the metrics of two sides, of their rows and what could be read of their records."""
    return [_beside(found) for found in measures(rows, [side.metadata if side else None for side in read])]


def _beside(found: Measures) -> MeasuresBeside:
    differing = list(found.differing.items())[:MOST_DIFFERING]
    same = list(found.same.items())[:MOST_SAME]
    return MeasuresBeside(
        several(found.title),
        [(name, *_apart(*values)) for name, values in differing],
        len(found.differing),
        [(name, _apart(value, value)[0]) for name, value in same],
        len(found.same),
    )


def _apart(one: Any, other: Any) -> tuple[str, str]:
    """Return two values as texts of bounded length; of those that begin alike for longer, the words that differ."""
    left, right = (MISSING if text is None else text for text in values_apart(number, one, other))
    shown = first_words(left, LONGEST_VALUE), first_words(right, LONGEST_VALUE)
    if shown[0] != shown[1] or left == right:
        return shown
    start = parting(left, right)
    return "…" + first_words(left[start:], LONGEST_VALUE), "…" + first_words(right[start:], LONGEST_VALUE)
