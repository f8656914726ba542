"""Recorded values as an index keeps them: finite numbers, integers that SQLite can hold, and the place of a record."""

from __future__ import annotations

import math
from typing import Any

from .base import Locator

INTEGERS = 2**63  # SQLite holds those below
MOST_DIGITS = 20  # of a text that is read as an integer


def number(value: Any) -> float | None:
    """Return a recorded value as a finite float; True and False count as 1 and 0, anything else as missing."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, (int, float)):
        try:
            finite = float(value)
        except OverflowError:
            return None
        return finite if math.isfinite(finite) else None
    return None


def integer(value: Any) -> int | None:
    """Return a recorded number as an integer that SQLite can hold, else None."""
    whole = value if isinstance(value, int) else number(value)
    return int(whole) if whole is not None and abs(whole) < INTEGERS else None


def integer_in_text(value: Any) -> int | None:
    """Return a recorded number, or a text that is one, as an integer that SQLite can hold; else None."""
    if isinstance(value, str) and len(value) <= MOST_DIGITS:
        try:
            value = float(value)
        except ValueError:
            return None
    return integer(value)


def place_of(locator: Locator) -> dict[str, Any]:
    """Return where a record is, as metadata tells it."""
    return {
        "path": locator.path,
        "line": locator.line,
        "byte_offset": locator.byte_offset,
        "byte_length": locator.byte_length,
        "item": locator.item,
    }
