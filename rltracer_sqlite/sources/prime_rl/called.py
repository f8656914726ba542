"""The names of the tools that a record's messages call, out of what the index decodes of each call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from ... import messages as normal
from ...tool_names import kept_names, names_json
from .record_types import Function, ToolCall


def written_names(calls: Sequence[Any]) -> str | None:
    """Return the names of the tools that are called as the index keeps them; None where no call has a name."""
    return names_json(kept_names({_name(call): None for call in calls}))


def _name(call: Any) -> str | None:
    """Return the name of a call, the same as `messages.called_name` finds it; None for what is no text."""
    if type(call) is not ToolCall:
        return _text(normal.called_name(call))
    function = call.function
    if type(function) is Function:
        return _text(call.name if function.name is UNSET else function.name)
    return _text(function if call.name is None else call.name)


def _text(name: Any) -> str | None:
    return name if type(name) is str else None
