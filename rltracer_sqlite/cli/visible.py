"""Text for a terminal, in which whatever could steer it or hide in it is made visible."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Mapping
from typing import Any

# What steers a terminal or hides in it: control characters, line separators, bidirectional marks, tag characters, and
# halves of surrogate pairs, which cannot be printed at all.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """Return a text with its control characters made visible, so that a name cannot steer the terminal."""
    return UNSEEN.sub(lambda found: _visible(found[0]), text)


def in_line(text: str) -> str:
    """Return a name or a path in one line of printable text, so that it cannot pass for a line of ours."""
    return printable(text).translate({ord("\n"): "\u240a", ord("\t"): "\u2409"})


def _visible(character: str) -> str:
    if character in "\n\t":
        return character
    if character < " ":
        return chr(0x2400 + ord(character))  # the Unicode pictures of control characters
    return _escaped(character)


def _escaped(text: str) -> str:
    """Return a text as JSON and Python escape it."""
    return json.dumps(text)[1:-1]


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _escaped(error.object[error.start : error.end]), error.end


ESCAPING = "rltracer.escaping"  # how a stream writes what its encoding lacks: what is JSON stays JSON
codecs.register_error(ESCAPING, _escape)


def json_line(value: Any) -> str:
    """Return a value as one line of JSON, in which no character can steer a terminal.

    A sum beyond all numbers, which JSON has no word for, is null.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, default=str)
    return UNSEEN.sub(lambda found: _escaped(found[0]), text)


def _finite(value: Any) -> Any:
    """Return a value with None in the place of infinite numbers, and of those that are none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, (list, tuple)) else value
