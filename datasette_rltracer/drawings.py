"""Small drawings inside the text: curves over steps and bars, as SVG that needs no script and no style attribute."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from rltracer_sqlite.comparison import DERIVED, advantage_in_words

from .figures import brief, mean_count, number

Point = tuple[float, float | None]
WIDTH, HEIGHT, MARGIN = 120, 28, 3


def spark(points: Sequence[Point], label: str, low: float | None = None, high: float | None = None) -> Markup:
    """Return a curve of (step, value); a missing value breaks it. `low` and `high` fix the scale.

    The newest value is a dot, and so is a value between two gaps. Without any value nothing is drawn.
    """
    known = [(x, y) for x, y in points if y is not None and math.isfinite(y)]
    if not known:
        return Markup('<span class="muted">not recorded</span>')
    low = min(y for _, y in known) if low is None else low
    high = max(y for _, y in known) if high is None else high
    first, last = points[0][0], points[-1][0]

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - first) / (last - first) if last > first else 0.5
        up = min(max((y - low) / (high - low), 0), 1) if high > low else 0.5
        return MARGIN + across * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN)

    lines, dots = _unbroken(points)
    drawn = Markup().join(
        Markup('<polyline points="{}"/>').format(" ".join("{:.1f},{:.1f}".format(*place(*point)) for point in line))
        for line in lines
    )
    drawn += Markup().join(
        Markup('<circle cx="{:.1f}" cy="{:.1f}" r="1.7"/>').format(*place(*point)) for point in {*dots, known[-1]}
    )
    if low < 0 < high:
        y = place(first, 0)[1]
        drawn = Markup('<path class="zero" d="M0,{:.1f}H{}"/>').format(y, WIDTH) + drawn
    said = f"{label}: {_words(points, known)}"
    return Markup(
        '<svg class="spark" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">'
        "<title>{2}</title>{3}</svg>"
    ).format(WIDTH, HEIGHT, said, drawn)


def _unbroken(points: Sequence[Point]) -> tuple[list[list[tuple[float, float]]], list[tuple[float, float]]]:
    """Return the stretches without a gap, and the values that stand alone."""
    stretches: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is None or not math.isfinite(y):
            stretches.append([])
        else:
            stretches[-1].append((x, y))
    return [line for line in stretches if len(line) > 1], [line[0] for line in stretches if len(line) == 1]


def _words(points: Sequence[Point], known: Sequence[tuple[float, float]]) -> str:
    first, last = known[0], known[-1]
    gaps = f", {len(points) - len(known)} without a value" if len(known) < len(points) else ""
    if len(known) == 1:
        return f"{number(last[1])} at step {number(last[0])}{gaps}"
    return f"from {number(first[1])} at step {number(first[0])} to {number(last[1])} at step {number(last[0])}{gaps}"


# Bars stand in long tables. They are made of numbers alone, so there is nothing in them to escape.


def rate_bar(successes: int, scored: int, trajectories: int) -> Markup:
    """Return the passed, failed and unscored parts of some trajectories, side by side."""
    passed, judged = (60 * part / max(trajectories, 1) for part in (successes, scored))
    return Markup(
        '<svg class="rate" viewBox="0 0 60 10" width="60" height="10" aria-hidden="true">'
        f'<rect class="unscored" x="{judged:.1f}" y="4.5" width="{60 - judged:.1f}" height="1"/>'
        f'<rect class="failed" x="0.5" y="1.5" width="{max(judged - 1, 0):.1f}" height="7"/>'
        f'<rect class="passed" x="0" y="1" width="{passed:.1f}" height="8"/></svg>'
    )


def signed_bar(value: float | None, largest: float) -> Markup:
    """Return a bar to the right of the middle for a positive value, to the left for a negative one."""
    if value is None or not math.isfinite(value) or not largest:
        return Markup("")
    length = min(abs(value) / largest, 1) * 30
    start, look = (30.0, "passed") if value >= 0 else (30 - length, "failed")
    return Markup(
        '<svg class="signed" viewBox="0 0 60 10" width="60" height="10" aria-hidden="true"><path d="M30,0V10"/>'
        f'<rect class="{look}" x="{start:.1f}" y="1.5" width="{length:.1f}" height="7"/></svg>'
    )


def length_bar(value: float | None, largest: float) -> Markup:
    """Return a bar from the left whose full length is the largest value."""
    if not value or not largest or not math.isfinite(value):
        return Markup("")
    return Markup(
        '<svg class="length" viewBox="0 0 60 10" width="60" height="10" aria-hidden="true">'
        f'<rect y="2" width="{min(value / largest, 1) * 60:.1f}" height="6"/></svg>'
    )


def cell(value: float | None, missing: str = "–") -> Markup:
    """Return a number as the content of a table's cell; what is not recorded is muted."""
    words = brief(value)
    return Markup(f'<span class="muted">{missing}</span>') if words is None else Markup(words)


def mean_cell(value: float | None) -> Markup:
    """Return a mean of tokens or turns as the content of a table's cell; what is not recorded is muted."""
    words = mean_count(value)
    return cell(value) if words is None else Markup(words)


def reward_cell(mean: float | None, rewarded: int, scored: int, missing: str = "–") -> Markup:
    """Return a mean reward, with how many trajectories it is over where the pass rate beside it is over others."""
    if not rewarded or rewarded == scored:
        return cell(mean, missing)
    title = "the trajectories that have a reward"
    return cell(mean, missing) + Markup(f' <span class="muted" title="{title}">over {number(rewarded)}</span>')


def advantage_cell(recorded: float | None, derived: float | None, is_strong: bool = False) -> Markup:
    """Return an advantage, marked where it is derived; it says so where there is neither."""
    words = advantage_in_words(number, recorded, derived)
    if words is None:
        return Markup('<span class="muted">not recorded</span>')
    value, _, mark = words.partition(" ")
    shown = Markup("<b>{}</b>" if is_strong else "{}").format(value)
    return shown + Markup(' <span class="muted small derived" title="{}">{}</span>').format(DERIVED, mark) * bool(mark)


def rate_cell(successes: int, scored: int, trajectories: int) -> Markup:
    """Return a pass rate with what it is a share of, or a dash and how many trajectories are unscored."""
    if not scored:
        none = f"– {number(trajectories)} unscored" if trajectories else "unscored"
        return Markup('<span class="muted">{}</span>').format(none)
    unscored = f", {number(trajectories - scored)} unscored" if scored < trajectories else ""
    return Markup(
        # All with three decimals, so that they and what follows stand below one another.
        f'{brief(successes / scored)} <span class="muted">{number(successes)} of {number(scored)}{unscored}</span>'
    )
