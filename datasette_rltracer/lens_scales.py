"""The colours of the token lens: which step of which scale a value falls on, and how a legend says it.

A step is the name of a class in lens.css. The steps of logprob, entropy and mismatch are the same on every page, so
that two trajectories can be compared; those of the advantage reach to the largest one of the branch.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from .figures import rough

NEGATIVE, ZERO, POSITIVE = ("n4", "n3", "n2", "n1"), "z", ("p1", "p2", "p3", "p4")
SURPRISE = ("s7", "s6", "s5", "s4", "s3", "s2", "s1", "s0")
SPREAD = ("e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7")
SMALLEST = 5e-324


@dataclass(frozen=True)
class Step:
    """One colour of a legend and the values that it stands for, in words."""

    look: str
    words: str


@dataclass(frozen=True)
class Scale:
    """Steps from the lowest values to the highest, and the bounds between them."""

    looks: tuple[str, ...]
    bounds: tuple[float, ...]  # one fewer than looks, ascending; a bound belongs to the step above it

    def look(self, value: float) -> str:
        """Return the step of a value."""
        return self.looks[bisect_right(self.bounds, value)]

    def steps(self) -> list[Step]:
        """Return the legend."""
        inner = [_between(low, high) for low, high in zip(self.bounds, self.bounds[1:], strict=False)]
        words = [f"below {rough(self.bounds[0])}", *inner, f"from {rough(self.bounds[-1])}"]
        return [Step(look, said) for look, said in zip(self.looks, words, strict=True)]


def _between(low: float, high: float) -> str:
    return "0" if low == -high and abs(low) == SMALLEST else f"{rough(_zero(low))} to {rough(_zero(high))}"


def _zero(value: float) -> float:
    return 0.0 if abs(value) == SMALLEST else value


LOGPROB = Scale(SURPRISE, (-5.0, -3.0, -2.0, -1.0, -0.5, -0.25, -0.1))
ENTROPY = Scale(SPREAD, (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0))
MISMATCH = Scale((*NEGATIVE, ZERO, *POSITIVE), (-0.5, -0.2, -0.05, -0.02, 0.02, 0.05, 0.2, 0.5))


def signed_scale(values: Iterable[float | None]) -> Scale:
    """Return a scale around zero, which has a step of its own, that reaches to the largest value or a bit farther."""
    largest = _rounded_up(max((abs(value) for value in values if value is not None), default=1.0) or 1.0)
    above = (SMALLEST, *(largest * share for share in (0.25, 0.5, 0.75)))
    return Scale((*NEGATIVE, ZERO, *POSITIVE), (*(-bound for bound in reversed(above)), *above))


def _rounded_up(value: float) -> float:
    """Return the next of …, 0.1, 0.2, 0.5, 1, 2, 5, 10, …"""
    power = 10.0 ** math.floor(math.log10(value))
    return next((factor * power for factor in (1, 2, 5, 10) if factor * power >= value), value)
