"""Prompt templates: JSON files with `chat_template`, `input_variables` and `tools`, filled from a source row.

A placeholder is a name in braces, as Python's str.format has them; two braces stand for one. Nothing else of
str.format works here, so that a template cannot reach into Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from string import Formatter
from typing import Any

from ..messages import Message, content_text, tool_definitions

VARIABLES = ("inputs", "output", "evaluation_criteria", "rubric")
NOT_A_SCORE = "weight"
PREFIX_ROLES = ("system", "user")


class RetemplateError(ValueError):
    """A template, source row or SFT row that cannot be used, in a sentence that says what to do."""


@dataclass(frozen=True)
class PromptTemplate:
    """The system and user messages before the first answer, with placeholders, and the tools that go with them."""

    path: Path
    messages: tuple[tuple[str, tuple[tuple[str, str | None], ...]], ...]  # role, pieces of (text, variable behind it)
    tools: tuple[dict[str, Any], ...]
    sha256: str

    @classmethod
    def load(cls, path: Path) -> PromptTemplate:
        """Read a template file. Raises RetemplateError."""
        try:
            content = path.read_bytes()
            template = json.loads(content)
        except OSError as error:
            raise RetemplateError(f"{path} cannot be read: {error.strerror}.") from None
        except (ValueError, RecursionError) as error:
            raise RetemplateError(f"{path} is no JSON: {error}.") from None
        if not isinstance(template, dict):
            raise RetemplateError(f"{path} is no JSON object with a chat_template.")
        declared = set(_texts(template.get("input_variables") or [], path, "input_variables"))
        messages = tuple(_prefix(template.get("chat_template"), path))
        used = {name for _, pieces in messages for _, name in pieces if name is not None}
        if unknown := sorted((declared | used) - set(VARIABLES)):
            raise RetemplateError(f"{path} asks for {', '.join(unknown)}; a source row gives {', '.join(VARIABLES)}.")
        tools = tuple(tool_definitions(template.get("tools") or []))
        return cls(path, messages, tools, sha256(content).hexdigest())

    def render(self, values: Mapping[str, str]) -> list[Message]:
        """Return the messages with the values of a source row in their places."""
        return [
            {"role": role, "content": "".join(text + (values[name] if name else "") for text, name in pieces)}
            for role, pieces in self.messages
        ]


def _prefix(recorded: Any, path: Path) -> Iterable[tuple[str, tuple[tuple[str, str | None], ...]]]:
    if not isinstance(recorded, list) or not all(isinstance(message, dict) for message in recorded):
        raise RetemplateError(f"The chat_template of {path} is no list of messages.")
    found = []
    for message in recorded:
        if message.get("role") == "assistant":
            break  # what follows is an example or a place for the answer
        if message.get("role") in PREFIX_ROLES:
            found.append((str(message["role"]), _pieces(content_text(message.get("content")), path)))
    if "user" not in [role for role, _ in found]:
        raise RetemplateError(f"The chat_template of {path} has no user message before its first answer.")
    return found


def _pieces(text: str, path: Path) -> tuple[tuple[str, str | None], ...]:
    try:
        parsed = list(Formatter().parse(text))
    except ValueError as error:
        raise RetemplateError(f"A message of {path} has braces that do not match: {error}.") from None
    for _, name, spec, conversion in parsed:
        if spec or conversion or (name is not None and not name.isidentifier()):
            raise RetemplateError(f"{{{name}}} in {path} is no placeholder: write a plain name, or {{{{ for a brace.")
    return tuple((literal, name) for literal, name, _, _ in parsed)


def _texts(value: Any, path: Path, what: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise RetemplateError(f"The {what} of {path} are no list of names.")
    return value


def source_values(row: Any) -> list[dict[str, str]]:
    """Return what a source row gives to a template: once, or for each order that its binary rubric may have had.

    Raises RetemplateError for a row of another shape.
    """
    if not isinstance(row, Mapping):
        raise RetemplateError("it is no JSON object")
    rubric = row.get("rubric") or {}
    if not isinstance(rubric, Mapping):
        raise RetemplateError("its rubric is no object with criteria and scores")
    values = {
        "inputs": str(row.get("input") or ""),
        "output": str(row.get("output") or ""),
        "evaluation_criteria": str(rubric.get("criteria") or ""),
    }
    return [{**values, "rubric": text} for text in rubric_texts(rubric.get("scores") or {})]


def rubric_texts(scores: Any) -> list[str]:
    """Return the ways in which a rubric may have stood in a prompt: a line "score - meaning" per score.

    A binary rubric reads pass, then fail; but its keys are often sorted when a row is stored, and prompts made after
    that have them in that order. A weight is no score. Raises RetemplateError.
    """
    if not isinstance(scores, Mapping):
        raise RetemplateError("the scores of its rubric are no object")
    items = [(str(key), value) for key, value in scores.items() if _plain(key) != NOT_A_SCORE]
    orders = [items]
    if sorted(_plain(key) for key, _ in items) == ["fail", "pass"]:
        orders = [sorted(items, key=lambda item: _plain(item[0]) != "pass"), items]
    return list(dict.fromkeys("\n".join(f"{key} - {value}" for key, value in order) for order in orders))


def _plain(key: Any) -> str:
    return str(key).strip().casefold()


def prefix_key(messages: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the same bytes for the same roles and texts."""
    texts = [[str(message.get("role") or ""), content_text(message.get("content"))] for message in messages]
    return sha256(json.dumps(texts).encode()).digest()


def split_row(row: Any) -> tuple[list[Message], list[Message]]:
    """Return the messages of an SFT row before its first answer, and those from there on. Raises RetemplateError."""
    messages = row.get("messages") if isinstance(row, dict) else None
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise RetemplateError("it has no list of messages")
    for place, message in enumerate(messages):
        if message.get("role") == "assistant":
            if place == 0:
                raise RetemplateError("it begins with an answer, so it has no prompt to replace")
            return messages[:place], messages[place:]
    raise RetemplateError("it has no answer")
