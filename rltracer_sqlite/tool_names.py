"""The names of the tools that a trajectory called, as the index keeps them: distinct, in order, and bounded.

A model may call what does not exist, by names of any length and number; the index keeps the beginning of both.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from .messages import called_name

MOST_NAMES = 50  # of one trajectory
LONGEST_NAME = 100  # characters
KNOWN_LISTS = 4096  # that are not written again for each trajectory


def called_tools(calls: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of the tools that recorded calls call, in any form that `messages.tool_call` knows."""
    return kept_names(map(called_name, calls))


def kept_names(names: Iterable[Any]) -> tuple[str, ...]:
    """Return the first MOST_NAMES distinct names, in order, each cut at LONGEST_NAME; what is no text has no name."""
    kept: dict[str, None] = {}
    for name in names:
        if name and isinstance(name, str):
            kept[_kept(name)] = None
            if len(kept) == MOST_NAMES:
                break
    return tuple(kept)


def _kept(name: str) -> str:
    # NUL ends a text for SQLite's functions, and half of a surrogate pair is no text.
    name = name[:LONGEST_NAME].replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return name


@lru_cache(maxsize=KNOWN_LISTS)
def names_json(names: tuple[str, ...]) -> str | None:
    """Return kept names as the column `tools` of an index holds them, a JSON array; None where there are none."""
    return msgspec.json.encode(names).decode() if names else None


def names_of(written: str | None) -> list[str]:
    """Return the names that `names_json` has written."""
    return msgspec.json.decode(written, type=list[str]) if written else []
