"""The text of a trajectory as it is searched: every message once, with its reasoning and its tool calls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from ..amounts import plural
from ..messages import content_text

if TYPE_CHECKING:
    from ..trajectory import Trajectory

BETWEEN = "\n\n"  # between two texts of a document
MOST_CHARACTERS = 50_000_000  # of one document; SQLite takes no text of more than a thousand million bytes
LONGEST_ARGUMENTS = 10_000_000  # characters that are decoded; longer ones are searched as they are written


@dataclass(frozen=True)
class Place:
    """Where a text of a document stands: message `message` (from 0, as in a list) of branch `branch` (from 1)."""

    branch: int
    message: int
    role: str


@dataclass(frozen=True)
class Document:
    """The text of a trajectory, and where each stretch of it stands."""

    text: str
    starts: Sequence[int]  # where each message's text begins
    places: Sequence[Place]

    def __repr__(self) -> str:
        return f"<Document: {plural(len(self.text), 'character')} of {plural(len(self.places), 'message')}>"

    def place(self, offset: int) -> Place | None:
        """Return where the character at `offset` stands."""
        number = bisect_right(self.starts, offset) - 1
        return self.places[number] if number >= 0 else None

    def message(self, offset: int) -> tuple[int, int]:
        """Return where the text of the message that the character at `offset` belongs to starts and ends."""
        number = bisect_right(self.starts, offset)
        end = self.starts[number] - len(BETWEEN) if number < len(self.starts) else len(self.text)
        return self.starts[number - 1], max(end, offset)


def document(trajectory: Trajectory) -> Document:
    """Return the text of all messages over all branches, each message once.

    The place of a message on several branches is that on the last of them, which is the branch that a page shows
    when none is asked for.
    """
    messages: dict[int, Mapping[str, Any]] = {}
    places: dict[int, Place] = {}
    for number, branch in enumerate(trajectory.branches or [trajectory.messages], start=1):
        nodes = trajectory.branch_nodes[number - 1] if number <= len(trajectory.branch_nodes) else []
        for position, message in enumerate(branch):
            # Without node numbers a message that two branches share is the same object.
            key = nodes[position] if position < len(nodes) else -id(message)
            messages.setdefault(key, message)
            places[key] = Place(number, position, str(message.get("role") or ""))
    ordered = sorted(messages) if min(messages, default=0) >= 0 else list(messages)
    starts, texts, length = [], [], 0
    for key in ordered:
        text = message_text(messages[key])
        starts.append(length)
        texts.append(text)
        length += len(text) + len(BETWEEN)
    return Document(storable(joined(texts)), starts, [places[key] for key in ordered])


def messages_text(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of messages of one branch, as `document` has it."""
    return storable(joined(map(message_text, messages)))


def joined(texts: Iterable[str]) -> str:
    """Return texts as one document."""
    return BETWEEN.join(texts)[:MOST_CHARACTERS]


def storable(text: str) -> str:
    """Return a text as SQLite can take it: a half of a surrogate pair, which is no UTF-8, becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def message_text(message: Mapping[str, Any]) -> str:
    """Return all that a normal message says: reasoning, content, and the names and arguments of tool calls."""
    return BETWEEN.join(_texts(message))


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    for key in ("reasoning_content", "reasoning", "content"):
        if value := message.get(key):
            yield content_text(value)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        yield f"{function.get('name') or ''} {argument_text(str(function.get('arguments') or ''))}"


def argument_text(arguments: str) -> str:
    """Return the names and values of JSON arguments, in which escapes such as `\\n` would join two words."""
    if "\\" not in arguments or len(arguments) > LONGEST_ARGUMENTS:
        return arguments
    try:
        return "\n".join(_leaves(msgspec.json.decode(arguments)))
    except (ValueError, RecursionError):
        return arguments


def _leaves(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        inner = pending.pop()
        if isinstance(inner, dict):
            pending += [part for pair in reversed(inner.items()) for part in reversed(pair)]
        elif isinstance(inner, list):
            pending += reversed(inner)
        elif inner is not None:
            yield str(inner)
