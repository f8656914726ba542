"""Field filters as people write them: 'metrics.num_turns<=8', 'env=math,code', 'info.level?>=2'."""

from __future__ import annotations

import re
from typing import Any

from .preferences import ExportError, FieldFilter

FIELD = re.compile(r"(?P<path>[^<>=?\s]+)(?P<missing>\??)\s*(?P<operator><=|>=|=)(?P<value>.+)")


def parse_field(text: str) -> FieldFilter:
    """Return the filter that a text means; a question mark behind the path keeps what has no value there.

    Raises ExportError.
    """
    match = FIELD.fullmatch(text.strip())
    if not match:
        raise ExportError(f"{text!r} is no filter; write PATH<=VALUE, PATH>=VALUE or PATH=VALUE,VALUE.")
    path, missing, value = match["path"], bool(match["missing"]), match["value"].strip()
    if match["operator"] == "=":
        allowed = [one for part in value.split(",") for one in _meanings(part.strip())]
        return FieldFilter(path, allowed_values=tuple(allowed), include_missing=missing)
    try:
        bound = float(value)
    except ValueError:
        raise ExportError(f"{value!r} in {text!r} is no number.") from None
    low = match["operator"] == ">="
    return FieldFilter(path, bound if low else None, None if low else bound, include_missing=missing)


def _meanings(text: str) -> list[Any]:
    """Return what a written value may mean: itself, and the number or truth value that it spells."""
    if text.lower() in ("true", "false"):
        return [text, text.lower() == "true"]
    try:
        return [text, float(text)]
    except ValueError:
        return [text]
