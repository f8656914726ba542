"""The first records of a file and what their columns hold: what a mapping is guessed from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ...tokens.families import find_family
from .rows import Row, elements, json_text

ROWS = 20
MOST_NAMES, MOST_DEPTH = 300, 4
MESSAGE_KEYS = (("role", "content"), ("from", "value"), ("role", "text"), ("speaker", "text"))
ROLES = {"human": "user", "gpt": "assistant", "model": "assistant", "bot": "assistant", "observation": "tool"}


class Sampled:
    """Rows of a file in the layout that its records seem to have."""

    def __init__(self, records: Sequence[Row]) -> None:
        self.layout, self.rows, self.why = _layout(records)
        paths = Counter(path for row in self.rows for name in row.cells for path in _paths(name, row.get(name)))
        self.names = [path for path, _ in paths.most_common(MOST_NAMES)]

    def kinds(self, name: str) -> set[str]:
        """Return the kinds of a column's values, nulls left out."""
        return {row.kind(name) for row in self.rows if row.has(name)} - {"null"} or {"null"}

    def are_numbers(self, name: str) -> bool:
        """Say whether a column holds lists of numbers."""
        lists = [value for value in self._values(name) if isinstance(value, list)]
        return bool(lists) and all(isinstance(one, (int, float)) for value in lists for one in value[:5])

    def are_answers(self, name: str) -> bool:
        """Say whether a column holds lists of texts or of message lists: several answers to one prompt."""
        lists = [value for value in self._values(name) if isinstance(value, list)]
        return bool(lists) and all(isinstance(one, (str, list)) for value in lists for one in value)

    def are_chunks(self, name: str) -> bool:
        """Say whether a column holds messages whose texts are pieces of a chat template."""
        for value in self._values(name):
            first = value[0] if isinstance(value, list) and value else None
            text = first.get("content") if isinstance(first, dict) else first
            if isinstance(text, str) and find_family(text):
                return True
        return False

    def message_keys(self, name: str) -> tuple[str, str] | None:
        """Return the keys of role and text in a column that holds lists of messages, else None."""
        for message in self._messages(name):
            return next((keys for keys in MESSAGE_KEYS if all(key in message for key in keys)), None)
        return None

    def holds_answer(self, name: str, key: str) -> bool:
        """Say whether a column of messages holds one of the assistant's."""
        return any(ROLES.get(role, role) == "assistant" for role in self._roles(name, key))

    def role_names(self, name: str, key: str) -> str:
        """Return a TOML table of what a column's roles mean."""
        known = [role for role in sorted(self._roles(name, key)) if role in ROLES]
        return "{ " + ", ".join(f"{json.dumps(role)} = {json.dumps(ROLES[role])}" for role in known) + " }"

    def _roles(self, name: str, key: str) -> set[str]:
        return {str(message.get(key)) for message in self._messages(name)}

    def _messages(self, name: str) -> Iterator[dict[str, Any]]:
        for value in self._values(name):
            listed = json_text(value) if isinstance(value, str) and value[:1] == "[" else value
            yield from (one for one in listed if isinstance(one, dict)) if isinstance(listed, list) else ()

    def _values(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]


def _paths(path: str, value: Any, depth: int = 1) -> Iterator[str]:
    """Yield a column's path and those of the values inside it."""
    yield path
    if isinstance(value, dict) and depth < MOST_DEPTH:
        for name, inner in value.items():
            yield from _paths(f"{path}.{name}", inner, depth + 1)


def _layout(records: Sequence[Row]) -> tuple[str, list[Row], str]:
    """Return the layout that records have, their rows, and why."""
    lengths = [_lengths(record) for record in records]
    if any(len(found) != 1 for found in lengths):
        return "rows", list(records), ""
    if all(found == {1} for found in lengths):
        return "singletons", [_unwrapped(record) for record in records], "every value is a list of one"
    rows = [row for record in records[:2] for row in _columns(record)]
    return "columns", rows, "every record is an object of lists of one length"


def _lengths(record: Row) -> set[int]:
    """Return the lengths of a record's lists; none where other things than lists and numbers are in it."""
    lists = [name for name in record.cells if record.kind(name) == "list"]
    if len(lists) < 2 or any(record.kind(name) not in ("list", "number", "null") for name in record.cells):
        return set()
    return {len(elements(record.cells[name])) for name in lists}


def _unwrapped(record: Row) -> Row:
    cells = record.cells.items()
    return Row({name: elements(cell)[0] if record.kind(name) == "list" else cell for name, cell in cells})


def _columns(record: Row) -> list[Row]:
    lists = {name: elements(cell) for name, cell in record.cells.items() if record.kind(name) == "list"}
    return [Row(dict(zip(lists, cells, strict=True))) for cells in list(zip(*lists.values(), strict=True))[:ROWS]]
