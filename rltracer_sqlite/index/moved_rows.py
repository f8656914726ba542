"""Rows that are read from another file since theirs has vanished, or from their own again: what is told of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..amounts import listed, plural


class Move(NamedTuple):
    """How a row has come to another file, and the steps that it counted and counts in."""

    is_back: bool  # from a copy to its own file, which is there again
    before: int | None
    now: int | None


def moved_words(moved: Mapping[Move, int]) -> list[str]:
    """Return how many rows are read from another file now, and which of them count in another step than before."""
    words = []
    for is_back in (False, True):
        counts = {move: count for move, count in moved.items() if move.is_back == is_back}
        if total := sum(counts.values()):
            others = [_steps(move, counts[move]) for move in sorted(counts, key=str) if move.now != move.before]
            words.append(_what(total, is_back) + (f"; of these {listed(others)}" if others else ""))
    return words


def _what(count: int, is_back: bool) -> str:
    of_files, verb = ("whose file", "is") if count == 1 else ("whose files", "are")
    if is_back:
        return f"{plural(count, 'trajectory')} {of_files} {verb} back {verb} read from there again"
    return f"{plural(count, 'trajectory')} {of_files} {verb} gone or unreadable {verb} read from copies now"


def _steps(move: Move, count: int) -> str:
    """Return where rows count now: "4 count in step 6 instead of step 5"."""
    now, before = ("no step" if step is None else f"step {step}" for step in (move.now, move.before))
    return f"{count:,} {'counts' if count == 1 else 'count'} in {now} instead of {before}"
