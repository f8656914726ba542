"""Tool calls whose arguments are written as pairs of a name and a text, and what type each text is of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .families import PairSyntax

TOOL_NAME = re.compile(r"[\w.:/-]{1,200}")

Schemas = Mapping[str, Mapping[str, Any]]
"""The name of a tool -> its parameters' JSON schema by parameter."""

_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def schemas_of(tools: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the schema of each parameter of each tool, for typing arguments that are written as text."""
    schemas: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        function = tool.get("function")
        parameters = function.get("parameters") if isinstance(function, Mapping) else None
        properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
        if isinstance(function, Mapping) and isinstance(properties, Mapping):
            schemas[str(function.get("name"))] = properties
    return schemas


def read_pairs(body: str, pair: PairSyntax, schemas: Schemas) -> tuple[str, str] | None:
    """Return the name of a call and its arguments as JSON, each in the type of its schema; None for another text."""
    body = body.strip("\n")
    if not body.startswith(pair.name_open) or (pair.end and not body.rstrip().endswith(pair.end)):
        return None
    head = body[len(pair.name_open) :]
    name, _, rest = head.partition(pair.name_close)
    name = name.strip()
    if not TOOL_NAME.fullmatch(name):
        return None
    values = _pairs(rest.rstrip().removesuffix(pair.end) if pair.end else rest, pair)
    if values is None:
        return None
    types = schemas.get(name, {})
    arguments = {key: _typed(value, types.get(key)) for key, value in values.items()}
    return name, json.dumps(arguments, ensure_ascii=False)


def _pairs(text: str, pair: PairSyntax) -> dict[str, str] | None:
    """Return the pairs of a call's text, or None where something else stands between them."""
    values: dict[str, str] = {}
    at = 0
    while (begin := text.find(pair.key_open, at)) >= 0:
        key_end = text.find(pair.key_close, begin)
        if key_end < 0 or text[at:begin].strip():
            return None
        key = text[begin + len(pair.key_open) : key_end]
        start = key_end + len(pair.key_close)
        if pair.value_open:
            opened = text.find(pair.value_open, start)
            if opened < 0 or text[start:opened].strip():
                return None
            start = opened + len(pair.value_open)
        end = _end_of_value(text, start, pair)
        if end < 0:
            return None
        values[key.strip()] = text[start:end].removeprefix("\n").removesuffix("\n")
        at = end + len(pair.value_close)
    return None if text[at:].strip() else values


def _end_of_value(text: str, start: int, pair: PairSyntax) -> int:
    """Return the closing mark that is followed by another key or by nothing: a value may hold such a mark itself."""
    end = text.find(pair.value_close, start)
    while end >= 0:
        behind = end + len(pair.value_close)
        rest = text[behind : behind + 64].lstrip()
        if not rest or rest.startswith(pair.key_open):
            return end
        end = text.find(pair.value_close, end + 1)
    return -1


def _typed(value: str, schema: Any) -> Any:
    """Return a value that was written as text in the type of its schema, or as written where that does not fit."""
    written = schema.get("type") if isinstance(schema, Mapping) else None
    names = [name for name in (written if isinstance(written, list) else [written]) if isinstance(name, str)]
    if not names or "string" in names:
        return value
    text = value.strip()
    try:
        # Templates write Python's True and False as well as JSON's.
        decoded = json.loads(text.lower() if text in ("True", "False", "None", "Null") else text)
    except (ValueError, RecursionError):
        return value
    for name in names:
        fits = isinstance(decoded, _JSON_TYPES.get(name, ()))
        if fits and not (isinstance(decoded, bool) and name != "boolean"):
            return decoded
    return value
