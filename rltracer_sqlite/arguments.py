"""What a caller gives, checked before it is used: an error names it, shows it in a few words and says what is taken."""

from __future__ import annotations

import math
import os
import reprlib
from numbers import Integral, Real
from operator import index
from pathlib import Path
from typing import Any

SMALLEST, LARGEST = -(2**63), 2**63 - 1  # what SQLite can hold
SHORT = reprlib.Repr()
SHORT.maxlevel, SHORT.maxstring, SHORT.maxother = 3, 100, 100


def shown(value: Any) -> str:
    """Return any value in a few words for a sentence: it may be nested a thousand deep, or have a million digits."""
    try:
        return SHORT.repr(value)
    except Exception:  # a number with more digits than Python writes, or an object that cannot say what it is
        return f"<{type(value).__name__}>"


def is_text(value: Any) -> bool:
    """Say whether a value is text that SQLite can hold: half of a surrogate pair is none."""
    return isinstance(value, str) and value.isascii() | (value.encode("utf-8", "replace").decode() == value)


def as_integer(value: Any) -> int | None:
    """Return an integer of any kind, such as numpy's, as one of Python's own; None for all else, also True and False.

    An integer that SQLite cannot hold is none.
    """
    if isinstance(value, bool):
        return None
    try:
        number = index(value)
    except TypeError:
        return None
    return number if SMALLEST <= number <= LARGEST else None


def as_number(value: Any) -> int | float | None:
    """Return a real number of any kind as one of Python's own; None for all else, also NaN, True and False."""
    if (whole := as_integer(value)) is not None:
        return whole
    if isinstance(value, Integral) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:  # a fraction
        return None
    return None if math.isnan(number) else number


def whole_number(name: str, value: Any, least: int = 0) -> int:
    """Return an integer of any kind as one of Python's own.

    Raises TypeError for what is none, also True and False, and ValueError for one that is out of bounds.
    """
    number = as_integer(value)
    if number is None and not (isinstance(value, int) and not isinstance(value, bool)):
        raise TypeError(f"{name} is {shown(value)}: it is a whole number.")
    if number is None or number < least:
        bounds = "of at most 64 bits" if number is None else f"from {least} on"
        raise ValueError(f"{name} is {shown(value)}: it is a whole number {bounds}.")
    return number


def step_number(value: Any) -> int | None:
    """Return the number of a step, or None, which stands for what has no step. Raises TypeError and ValueError."""
    return None if value is None else whole_number("step", value, least=SMALLEST)


def text(name: str, value: Any) -> str:
    """Return a text. Raises TypeError for what is none, and ValueError for what UTF-8 cannot write."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {shown(value)}: it is text.")
    if not is_text(value):
        raise ValueError(f"{name} is {shown(value)}: half of a surrogate pair is no text.")
    return value


def file_path(name: str, value: Any, refusal: type[ValueError] = ValueError) -> Path:
    """Return a path. Raises TypeError for what is none, such as bytes, and `refusal` for a text that cannot be one."""
    found = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(found, str):
        raise TypeError(f"{name} is {shown(value)}: it is a path, as text or as a Path.")
    if not can_be_path(found):
        raise refusal(f"{name} is {shown(value)}, which is the name of no file.")
    return Path(found)


def can_be_path(value: str) -> bool:
    """Say whether a text can be a path: it is not empty, and a file system can write it."""
    try:
        return b"\0" not in os.fsencode(value) and value != ""
    except UnicodeEncodeError:
        return False


def instance(name: str, value: Any, kind: type[Any]) -> None:
    """Raise TypeError for a value that is not of this kind."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {shown(value)}: it is a {kind.__name__}.")
