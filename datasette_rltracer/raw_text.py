"""The raw view of a branch: of every message exactly the recorded texts, none folded, paired, split or laid out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .conversation import FULL_LIMIT, MOST_CALLS, ROLES, TEXT_LIMIT, Page, paged
from .parts import MOST_PARTS
from .text import Text, cut, json_text


@dataclass(frozen=True)
class Piece:
    """One recorded text of a message and the field that it stands in; `is_json`: it is no text, but shown as JSON."""

    field: str
    text: Text
    is_json: bool = False


@dataclass(frozen=True)
class RawMessage:
    """A message by its recorded fields; `number` is its place in the branch, counted from 0."""

    number: int
    role: str
    kind: str
    pieces: list[Piece]
    left_out: int = 0  # parts and calls that are not shown
    is_full: bool = False

    @property
    def characters(self) -> int:
        """Return how many characters its fields have together."""
        return sum(piece.text.characters for piece in self.pieces)


def read_raw_page(messages: Sequence[Mapping[str, Any]], start: int = 0, full: int | None = None) -> Page[RawMessage]:
    """Return the messages of a branch from message `start` on, as far as one page goes; `full` is shown uncut."""
    return paged(
        messages,
        range(len(messages)),
        start,
        lambda number: raw_message(messages[number], number, number == full),
        lambda message: sum(len(piece.text.text) for piece in message.pieces),
    )


def raw_message(message: Mapping[str, Any], number: int, is_full: bool = False) -> RawMessage:
    """Return what is recorded of a message, each text cut at a limit unless it is shown in full."""
    limit = FULL_LIMIT if is_full else TEXT_LIMIT
    content, calls = message.get("content"), message.get("tool_calls") or ()
    parts = len(content) if isinstance(content, list) else 0
    role = str(message.get("role") or "")
    return RawMessage(
        number=number,
        role=role,
        kind=ROLES.get(role, "other"),
        pieces=list(_pieces(message, limit)),
        left_out=max(parts - MOST_PARTS, 0) + max(len(calls) - MOST_CALLS, 0),
        is_full=is_full,
    )


def _pieces(message: Mapping[str, Any], limit: int) -> Iterator[Piece]:
    for name, value in message.items():
        if name == "role" or value is None:
            continue
        if name == "content" and isinstance(value, list):
            for place, part in enumerate(value[:MOST_PARTS]):
                yield _part(f"content {place + 1}", part, limit)
        elif name == "tool_calls":
            for place, call in enumerate(value[:MOST_CALLS]):
                yield from _call(f"tool call {place + 1}", call, limit)
        else:
            yield _piece(name, value, limit)


def _part(field: str, part: object, limit: int) -> Piece:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        kind = part.get("type")
        others = set(part) - {"type", "text"}
        if not others:
            return _piece(field if kind in (None, "text") else f"{field}, {kind}", part["text"], limit)
    return _piece(field, part, limit)


def _call(field: str, call: Mapping[str, Any], limit: int) -> Iterator[Piece]:
    function = call.get("function") or {}
    for name, value in (
        ("id", call.get("id")),
        ("name", function.get("name")),
        ("arguments", function.get("arguments")),
    ):
        if value is not None:
            yield _piece(f"{field}, {name}", value, limit)
    for name, value in call.items():
        if name not in ("id", "type", "function") and value is not None:
            yield _piece(f"{field}, {name}", value, limit)


def _piece(field: str, value: object, limit: int) -> Piece:
    if isinstance(value, str):
        return Piece(field, cut(value, limit))
    return Piece(field, cut(json_text(value), limit), True)
