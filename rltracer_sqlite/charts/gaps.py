"""Where a line of a chart may not go on: across a window of steps that is known to be there and was not read."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Row = Mapping[str, Any]


class Window(NamedTuple):
    """The steps of one point or bar of a split."""

    split: str | None
    step_first: int
    step_last: int


def unread_windows(rows: Sequence[Row], missing: Iterable[tuple[str | None, int]], size: int) -> set[Window]:
    """Return the windows between the first and the last of a chart's rows of which nothing was read.

    `missing` are the splits and steps of which no trajectory was read, as in `unread.Unread`; a split of None may be
    any. `size` is that of the chart's windows. A window in which any other step of the split was read has a row, and
    is none of these; nor is one in which no step is known to be. Rows that are not over steps have no such windows.
    """
    if not rows or "split" not in rows[0]:
        return set()
    read = {(row["split"], row["step_first"]) for row in rows}
    first, last = min(row["step_first"] for row in rows), max(row["step_last"] for row in rows)
    splits = {split for split, _ in read}
    found = set()
    for split, step in missing:
        start = step - (step - first) % size
        for one in splits if split is None else splits & {split}:
            if first <= step <= last and (one, start) not in read:
                found.add(Window(one, start, min(start + size - 1, last)))
    return found


def stretches(rows: Sequence[Row], unread: Iterable[Window]) -> list[int]:
    """Return of each row of a chart after how many unread windows of its split it comes: a line joins equal ones."""
    starts: dict[str | None, list[int]] = {}
    for split, start, _ in sorted(unread, key=lambda window: window.step_first):
        starts.setdefault(split, []).append(start)
    return [bisect(starts.get(row.get("split"), ()), row["step_first"]) if starts else 0 for row in rows]
