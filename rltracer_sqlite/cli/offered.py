"""The tools that a model was offered, in the terminal: their names, or their definitions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..amounts import plural
from .columns import cut, screen_width, wrapped
from .visible import printable

MOST_NAMES, LONGEST_NAME = 12, 60
TOO_DEEP = "(nested too deeply to be printed here; the record has it)"


def offered_lines(tools: Sequence[Mapping[str, Any]], is_full: bool) -> Iterator[str]:
    """Yield how many tools were offered and their names, as the page of a trajectory does; or their definitions."""
    if not tools:
        return
    count = plural(len(tools), "tool")
    if is_full:
        yield f"{count} offered:"
        for tool in tools:
            yield from printable(_definition(tool)).split("\n")
        return
    names = [cut(_name(tool), LONGEST_NAME) for tool in tools[:MOST_NAMES]]
    more = ", …" if len(tools) > MOST_NAMES else ""
    what = "the definition" if len(tools) == 1 else "the definitions"
    yield from wrapped(f"{count} offered: {', '.join(names)}{more}; --full shows {what}", screen_width())


def _name(tool: Mapping[str, Any]) -> str:
    return str((tool.get("function") or {}).get("name") or "(no name)")


def _definition(tool: Mapping[str, Any]) -> str:
    try:
        return json.dumps(tool, ensure_ascii=False, indent=2, default=repr)
    except (RecursionError, ValueError):
        return TOO_DEEP
