"""The names of the tools that a record's messages call, out of what the index decodes of each call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import UNSET

from ... import messages as normal
from ...tool_names import kept_names, names_json
from .record_types import Function, ToolCall

KNOWN_NAMES = 1024  # lists of names that are not looked at again
SHORT = 1000  # characters; only lists up to this length are


def written_names(calls: Sequence[Any]) -> str | None:
    """Return the names of the tools that are called as the index keeps them; None where no call has a name."""
    names: dict[str, None] = {}
    try:
        # Nearly all calls are of this one form, and a trajectory makes many of few tools.
        for call in calls:
            names[call.name if call.function is None else _name(call)] = None
        is_short = len("".join(names)) <= SHORT
    except (AttributeError, TypeError):
        names, is_short = {name: None for call in calls if type(name := _name(call)) is str}, False
    return (_written if is_short else _written.__wrapped__)(tuple(names))


@lru_cache(maxsize=KNOWN_NAMES)
def _written(names: tuple[str, ...]) -> str | None:
    return names_json(kept_names(names))


def _name(call: Any) -> Any:
    """Return the name of a call, whatever it is: the same as `messages.called_name` finds."""
    if type(call) is not ToolCall:
        return normal.called_name(call)
    function = call.function
    if type(function) is Function:
        return call.name if function.name is UNSET else function.name
    return function if call.name is None and type(function) is str else call.name
