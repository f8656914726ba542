"""One message of a row in the normal form: recorded under any keys, or the text of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...messages import normal_message
from ...tokens.families import FAMILIES, family_named
from ...tokens.templates import UNSPLIT, parse_conversation
from ...trajectory import Message
from .mapping import Content
from .rows import at_path

REASONING = ("reasoning", "thinking")  # other names of reasoning_content


def message_of(recorded: Mapping[str, Any], content: Content) -> Message:
    """Return a recorded message in the normal form, whatever its keys are called."""
    message = dict(recorded)
    if content.role != "role" or content.text != "content":
        message["role"], message["content"] = _taken(message, content.role), _taken(message, content.text)
    if content.reasoning and isinstance(thought := _taken(message, content.reasoning), str):
        message["reasoning_content"] = thought
    message["role"] = content.roles.get(str(message.get("role")), message.get("role"))
    for name in REASONING:
        if isinstance(message.get(name), str) and not message.get("reasoning_content"):
            message["reasoning_content"] = message.pop(name)
    if content.drop_nulls and isinstance(message.get("tool_calls"), list):
        message["tool_calls"] = [without_nulls(call) for call in message["tool_calls"] if call is not None]
    return normal_message(message)


def _taken(message: dict[str, Any], path: str) -> Any:
    """Return what stands under a key, which is taken out, or at a dotted path, which is left as it is."""
    return message.pop(path) if path in message else at_path(message, path.split("."))


def without_nulls(value: Any) -> Any:
    """Return a value without the keys that hold null, at any depth."""
    if isinstance(value, Mapping):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def answer(text: str, family: str | None = None) -> Message:
    """Return the assistant's message of a completion: its reasoning apart, its calls where the family tells them."""
    for known in (family_named(family), None) if family else (None,):
        found = parse_conversation(without_end_marks(text), known, prompt_length=0)
        if len(found.messages) == 1 and found.content_kind == UNSPLIT:
            return found.messages[0]
    return {"role": "assistant", "content": text}


def without_end_marks(text: str) -> str:
    """Return a text without the marks that a template writes behind a turn."""
    for mark in (mark for family in FAMILIES for mark in family.ends):
        if text.rstrip().endswith(mark):
            return text.rstrip().removesuffix(mark)
    return text
