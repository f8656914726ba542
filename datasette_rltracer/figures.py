"""Numbers, amounts and times as a page says them: digits in groups, a real minus sign, dates in UTC."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone

from rltracer_sqlite.amounts import several


def number(value: float | None, digits: int = 4) -> str | None:
    """Return a number to read: grouped digits, four significant ones of a fraction, a real minus sign."""
    if value is None or isinstance(value, bool):
        return None if value is None else "yes" if value else "no"
    if isinstance(value, int):
        # Python refuses to write out integers of thousands of digits.
        text = f"{value:,}" if value.bit_length() < 1024 else f"an integer of {value.bit_length():,} bits"
    elif not math.isfinite(value):
        text = str(value)
    else:
        value += 0.0  # so that −0.0 is 0
        text = f"{value:,.0f}" if abs(value) >= 1e4 and value == int(value) else f"{value:.{digits}g}"
    return text.replace("-", "−")


def counted(count: int, what: str | tuple[str, str]) -> str:
    """Return how many there are of something, `what` in the singular or with a plural of its own: 1 step, 2 steps."""
    one, more = (what, several(what)) if isinstance(what, str) else what
    return f"{number(count)} {one if count == 1 else more}"


def brief(value: float | None) -> str | None:
    """Return a number for a column of many, as the tables of the terminal have it: three decimals of a fraction.

    From 10 on one decimal, from 1000 on none; what three decimals would make 0 has two significant digits.
    """
    if not isinstance(value, float) or not math.isfinite(value):
        return number(value)
    if abs(value) >= 1000:
        return number(round(value))
    decimals = f"{value:.1f}" if abs(value) >= 10 else f"{value + 0.0:.3f}"
    is_lost = value != 0 and abs(value) < 0.0005
    return (f"{value:.2g}" if is_lost else decimals).replace("-", "−")


def mean_count(value: float | None) -> str | None:
    """Return a mean of tokens or turns for a column of many, all with one decimal; from 1000 on with none, as `brief`.

    What one decimal would make 0 has what `brief` gives it.
    """
    if not isinstance(value, float) or not math.isfinite(value) or not 0.05 <= abs(value) < 1000:
        return "0.0" if value == 0 else brief(value)
    return f"{value:.1f}".replace("-", "−")


def rough(value: float | None) -> str | None:
    """Return a number for the bounds of a scale, which may be of any size: three significant digits of a fraction."""
    if isinstance(value, float) and math.isfinite(value) and abs(value) < 1000:
        return f"{value + 0.0:.3g}".replace("-", "−")
    return brief(value)


def instant(seconds: object) -> str | None:
    """Return a Unix time as a UTC date and time, or None where it is none."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not math.isfinite(seconds):
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def moment(text: object) -> str:
    """Return a time that the index keeps ("2026-11-29T19:58:57Z") as it is read, or whatever else stands there."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z", str(text), re.ASCII)
    return f"{found[1]} {found[2]} UTC" if found else str(text)
