"""How objects show themselves in a REPL: in one bounded line, whatever a model or a file has said."""

from __future__ import annotations

from dataclasses import MISSING, fields
from enum import Enum
from typing import Any

from .amounts import shortened
from .arguments import shown

LONGEST = 300  # characters of the arguments of an object


def short(value: Any, most: int = 50) -> str:
    """Return a value in one short line: text is quoted and cut off, of a list or an object only its kind is told."""
    told = value if isinstance(value, (str, int, float)) else type(value).__name__
    return repr(shortened(told, most) if isinstance(told, str) else told)


def given(self: Any) -> str:
    """Return a dataclass as it would be written: its name and the fields that differ from their defaults."""
    parts = []
    for one in fields(self):
        value = getattr(self, one.name)
        default = one.default if one.default_factory is MISSING else one.default_factory()
        if one.repr and (default is MISSING or value != default):
            parts.append(f"{one.name}={shown(value.value if isinstance(value, Enum) else value)}")
    listed = ", ".join(parts)
    return f"{type(self).__name__}({shortened(listed, LONGEST)})"
