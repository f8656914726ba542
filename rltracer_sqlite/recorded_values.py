"""Values as a record nests them: each by its dotted path, and the word for one that holds nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

EMPTY = "empty"  # what is said of a text, a list or an object that is recorded and holds nothing
MOST_DEPTH = 4
UNSHOWN = "nested too deeply to be shown"


def flat(values: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield (dotted path, value) of what a nested object holds: scalars, lists, and objects that are empty or deep."""
    for name, value in values.items() if isinstance(values, Mapping) else ():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping) and value and depth < MOST_DEPTH:
            yield from flat(value, here, depth + 1)
        else:
            yield here, value


def is_empty(value: object) -> bool:
    """Say whether a value is recorded and holds nothing: an empty text, list or object."""
    return isinstance(value, (str, list, Mapping)) and not value


def value_text(value: object) -> str:
    """Return a value that is no number as a text: as it is, or as JSON; of one that holds nothing that it is empty."""
    if is_empty(value):
        return EMPTY
    if not isinstance(value, (list, Mapping)):
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (RecursionError, ValueError):
        return UNSHOWN
