"""Recorded values as an index keeps them: numbers and texts that SQLite can hold, ids, and the place of a record."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from .base import Locator

INTEGERS = 2**63  # SQLite holds those below
MOST_DIGITS = 20  # of a text that is read as an integer
MAX_TEXT = 200  # characters of a recorded text, or of a dotted path, that the index keeps
MAX_DEPTH = 3  # of the objects whose values are kept
KNOWN_PATHS = 4096  # dotted paths that are not put together again for each record


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


def flag(value: Any) -> int | None:
    """Return a recorded truth value as 1 or 0, anything else as missing."""
    return int(value) if isinstance(value, bool) else None


def short(text: str | None) -> str | None:
    """Return a recorded text as the index keeps it: not too long, and without NUL, at which SQLite's functions stop."""
    if not text:
        return None
    # Nearly every text is kept as it is, which is asked without copying it.
    return (
        text
        if len(text) <= MAX_TEXT and "\0" not in text
        else text[:MAX_TEXT].replace("\0", "\N{REPLACEMENT CHARACTER}")
    )


def kept_text(text: str) -> str | None:
    """Return a recorded text as a value that can be selected by; None for one that is too long to be indexed."""
    return short(text) or "" if len(text) <= MAX_TEXT else None


def recorded_uid(recorded: Any) -> str | None:
    """Return a recorded id as the index keeps it: one that is too long by its hash; None where there is none."""
    if type(recorded) is not str:
        if recorded is None or isinstance(recorded, (dict, list)):
            return None
        recorded = str(recorded)
    uid: str = recorded
    if len(uid) > MAX_TEXT:
        return sha256(uid.encode()).hexdigest()
    return uid if uid and "\0" not in uid else short(uid)


def place_uid(path: str, offset: int, item: int | None) -> str:
    """Return the uid of a trajectory without a recorded id: its place."""
    return f"{path}@{offset}" if item is None else f"{path}@{offset}.{item}"


def add_values(values: dict[str, Any], path: str, recorded: Any, depth: int = 1) -> None:
    """Add the scalars of a recorded object by their dotted paths below `path`; a text too long to be indexed as None.

    Names that would make a path longer than MAX_TEXT are left out.
    """
    for name, value in (recorded or {}).items():
        if len(name) > MAX_TEXT or (here := value_path(path, name)) is None:
            continue  # no name of a column, and nothing to ask for
        kind = type(value)
        if kind is float and value - value == 0.0:  # finite, as nearly every number is
            values[here] = value
        elif kind is float or kind is int or kind is bool:
            if (finite := number(value)) is not None:
                values[here] = finite
        elif kind is dict:
            if depth < MAX_DEPTH:
                add_values(values, here, value, depth + 1)
        elif kind is str:
            values[here] = value if len(value) <= MAX_TEXT and "\0" not in value else kept_text(value)


@lru_cache(maxsize=KNOWN_PATHS)
def value_path(path: str, name: str) -> str | None:
    """Return the dotted path of a value as the index keeps it, or None where it is too long."""
    here = (f"{path}.{name}" if path else name).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return here if len(here) <= MAX_TEXT else None


def reward_path(name: str) -> str | None:
    """Return the dotted path of a named reward's score, or None where its name is too long."""
    return value_path("rewards", f"{name}.score") if len(name) < MAX_TEXT else None


def logprob_summary(*recorded: Iterable[Any]) -> dict[str, float | int] | None:
    """Return mean, minimum and count of the logprobs that are known, in nats; None where none is."""
    parts = [part for values in recorded if (part := _finite(list(values)))]
    count = sum(map(len, parts))
    if not count:
        return None
    mean = sum(map(sum, parts)) / count
    if not math.isfinite(mean):  # their sum is beyond all numbers, which their mean is not
        mean = math.fsum(value / count for part in parts for value in part)
    return {"mean": mean, "min": min(map(min, parts)), "count": count}


def _finite(values: list[Any]) -> Sequence[float]:
    """Return the finite numbers of a list. An array of a million is made and added up without looking at each."""
    try:
        numbers = array("d", values)
    except (TypeError, OverflowError):
        numbers = array("d", [math.nan])
    # A sum is finite only where all that is added up is.
    return numbers if math.isfinite(sum(numbers)) else [one for value in values if (one := number(value)) is not None]


def place_of(locator: Locator) -> dict[str, Any]:
    """Return where a record is, as metadata tells it."""
    return {
        "path": locator.shown,
        "line": locator.line,
        "byte_offset": locator.byte_offset,
        "byte_length": locator.byte_length,
        "item": locator.item,
    }
