"""The axis of steps of a chart: ticks at whole steps, as the steps are, whatever draws it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

MOST_TICKS = 10


def step_ticks(windows: Iterable[tuple[int, int]], most: int = MOST_TICKS) -> list[int]:
    """Return the steps that have a tick, at most `most`, of windows of a first and a last step.

    Where there are few single steps these are each of them, else round numbers of steps evenly apart.
    """
    found = sorted(set(windows))
    steps = {first for first, last in found if first == last}
    if len(steps) == len(found) <= most:
        return sorted(steps)
    first, last = found[0][0], max(last for _, last in found)
    apart = next(size for size in _round_sizes() if last // size - (first - 1) // size <= most)
    return list(range(first + -first % apart, last + 1, apart))


def _round_sizes() -> Iterable[int]:
    return (digit * 10**power for power in count() for digit in (1, 2, 5))


def fit_steps(encoding: dict[str, Any], windows: Iterable[tuple[int, int]]) -> None:
    """Give the axis of steps of a spec its ticks and, where it is drawn in lines, its two ends.

    The versions of Vega differ in where they put ticks that they choose, and some put them between two steps. With the
    ends of a line given, a window that is alone has a tick as well.
    """
    x, found = encoding["x"], list(windows)
    axis = x["axis"]
    axis["values"] = step_ticks(found, axis.pop("tickCount", MOST_TICKS))
    if "x2" not in encoding:
        first, last = min(found)[0], max(last for _, last in found)
        x["scale"]["domain"] = [first, last] if first < last else [first - 0.5, last + 0.5]
