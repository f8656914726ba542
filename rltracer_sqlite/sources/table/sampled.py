"""The first records of a file and what their columns hold: what a mapping is guessed from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from json import dumps
from typing import Any

from ...tokens.families import find_family
from .column_paths import MOST_NAMES, paths_of
from .rows import Row, elements, json_text, unwrapped

ROWS = 20
MOST_MESSAGES, LONGEST_ROLE, MOST_ROLES = 200, 30, 8
# Names that systems give to the keys of a message, the most telling first.
ROLE_KEYS = ("role", "from", "speaker", "who", "author", "sender", "author.role", "actor")
TEXT_KEYS = ("content.text", "content.parts", "content", "value", "text", "said", "utterance", "message", "body")
REASONING_KEYS = ("thought", "thoughts", "monologue", "rationale", "scratchpad", "cot", "chain_of_thought")
ROLES = {
    "assistant": "assistant", "gpt": "assistant", "model": "assistant", "bot": "assistant", "ai": "assistant",
    "agent": "assistant", "policy": "assistant", "llm": "assistant", "chatgpt": "assistant",
    "user": "user", "human": "user", "system": "system", "sys": "system", "developer": "developer",
    "tool": "tool", "observation": "tool", "function": "tool", "tool_response": "tool", "environment": "environment",
}  # fmt: skip


class Sampled:
    """Rows of a file in the layout that its records seem to have."""

    def __init__(self, records: Sequence[Row]) -> None:
        self.layout, self.rows, self.why = _layout(records)
        paths = Counter(path for row in self.rows for name in row.cells for path in paths_of(name, row.get(name)))
        # A column without a name is none that a mapping could name.
        self.names = [path for path, _ in paths.most_common(MOST_NAMES) if path]

    def kinds(self, name: str) -> set[str]:
        """Return the kinds of a column's values, nulls left out."""
        return {row.kind(name) for row in self.rows if row.has(name)} - {"null"} or {"null"}

    def described(self, name: str) -> str:
        """Return in a few words what a column holds."""
        kind = " or ".join(sorted(self.kinds(name)))
        first = next((value for value in self._values(name) if value is not None), None)
        inner = first[0] if isinstance(first, list) and first else first
        if isinstance(inner, dict):
            return f"{kind} of {', '.join(dumps(key[:30]) for key in list(inner)[:8])}"
        return f"{kind}, such as {dumps(first[:60])}" if isinstance(first, str) else kind

    def are_numbers(self, name: str) -> bool:
        """Say whether a column holds lists of numbers."""
        lists = [value for value in self._values(name) if isinstance(value, list)]
        return bool(lists) and all(isinstance(one, (int, float)) for value in lists for one in value[:5])

    def are_answers(self, name: str) -> bool:
        """Say whether a column holds lists of texts or of message lists: several answers to one prompt."""
        lists = [value for value in self._values(name) if isinstance(value, list)]
        return bool(lists) and all(isinstance(one, (str, list)) for value in lists for one in value)

    def go_with(self, answers: str, name: str) -> bool:
        """Say whether a column holds one value for each of the answers, in every record that has it."""
        pairs = zip(self._values(answers), self._values(name), strict=True)
        return self.kinds(name) == {"list"} and all(
            found is None or len(found) == len(value) for found, value in pairs if isinstance(value, list)
        )

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
        messages = [_keys(message) for message in islice(self._messages(name), MOST_MESSAGES)]
        role = _role_key(messages)
        text = _text_key(messages, role) if role else None
        return (role, text) if role and text else None

    def reasoning_key(self, name: str) -> str | None:
        """Return the key of reasoning in a column of messages, where it is no usual one."""
        keys = {key for message in islice(self._messages(name), MOST_MESSAGES) for key in message}
        return next((key for key in REASONING_KEYS if key in keys), None)

    def holds_answer(self, name: str, key: str) -> bool:
        """Say whether a column of messages holds one of the assistant's."""
        return "assistant" in self.role_meanings(name, key).values()

    def role_meanings(self, name: str, key: str) -> dict[str, str | None]:
        """Return what a column's roles mean; None for one that says nothing."""
        roles = {str(_keys(message).get(key)) for message in islice(self._messages(name), MOST_MESSAGES)}
        return {role: ROLES.get(role.lower()) for role in sorted(roles)}

    def last_role(self, name: str, key: str) -> str | None:
        """Return the role of the last message of most conversations."""
        last = Counter(str(_keys(messages[-1]).get(key)) for messages in self._conversations(name) if messages)
        return last.most_common(1)[0][0] if last else None

    def _messages(self, name: str) -> Iterator[dict[str, Any]]:
        return chain.from_iterable(self._conversations(name))

    def _conversations(self, name: str) -> Iterator[list[dict[str, Any]]]:
        for value in self._values(name):
            listed = json_text(value) if isinstance(value, str) and value[:1] == "[" else value
            if isinstance(listed, list):
                yield [one for one in listed if isinstance(one, dict)]

    def _values(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]


def _keys(message: dict[str, Any]) -> dict[str, str]:
    """Return a message's texts by their keys, those of an object in it by a dotted path; "" for anything else."""
    inner = {
        f"{key}.{name}": value
        for key, held in message.items()
        if isinstance(held, dict)
        for name, value in held.items()
    }
    return {key: value if isinstance(value, str) else "" for key, value in {**message, **inner}.items()}


def _role_key(messages: Sequence[dict[str, str]]) -> str | None:
    """Return the key that every message has and that holds who speaks: known by its name, or by what it holds."""
    shared = [key for key in (messages[0] if messages else ()) if all(key in message for message in messages)]
    found = {key: {message[key] for message in messages} for key in shared}
    short = {key: roles for key, roles in found.items() if len(roles) <= MOST_ROLES and _are_short(roles)}
    named = [key for key in ROLE_KEYS if key in short]
    telling = [
        key for key, roles in short.items() if any(ROLES.get(role.lower()) in ("user", "assistant") for role in roles)
    ]
    return next(iter([*[key for key in named if key in telling], *telling, *named]), None)


def _are_short(roles: set[str]) -> bool:
    return all(0 < len(role) <= LONGEST_ROLE for role in roles)


def _text_key(messages: Sequence[dict[str, str]], role: str) -> str | None:
    """Return the key of what is said: known by its name, else the one with the most text."""
    keys = {key for message in messages for key in message} - {role}
    if named := next((key for key in TEXT_KEYS if key in keys), None):
        return named
    lengths = {key: sum(len(message.get(key, "")) for message in messages) for key in keys}
    longest = max(lengths, key=lambda key: (lengths[key], key), default=None)
    return longest if longest is not None and lengths[longest] else None


def _layout(records: Sequence[Row]) -> tuple[str, list[Row], str]:
    """Return the layout that records have, their rows, and why."""
    lengths = [_lengths(record) for record in records]
    if any(len(found) != 1 for found in lengths):
        return "rows", list(records), ""
    if all(found == {1} for found in lengths):
        return "singletons", [unwrapped(record) for record in records], "every value is a list of one"
    rows = [row for record in records[:2] for row in _columns(record)]
    return "columns", rows, "every record is an object of lists of one length"


def _lengths(record: Row) -> set[int]:
    """Return the lengths of a record's lists; none where it holds other things than lists and numbers.

    None as well where a list is nested too deeply.
    """
    lists = [name for name in record.cells if record.kind(name) == "list"]
    if len(lists) < 2 or any(record.kind(name) not in ("list", "number", "null") for name in record.cells):
        return set()
    try:
        return {len(elements(record.cells[name])) for name in lists}
    except ValueError:
        return set()


def _columns(record: Row) -> list[Row]:
    lists = {name: elements(cell) for name, cell in record.cells.items() if record.kind(name) == "list"}
    return [Row(dict(zip(lists, cells, strict=True))) for cells in list(zip(*lists.values(), strict=True))[:ROWS]]
