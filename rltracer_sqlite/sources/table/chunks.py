"""Messages whose contents are pieces of rendered text, as NeMo-RL logs them, with or without their roles.

The training log lists strings: the prompt's chunks end with the opening of the assistant's turn, the model's own
text follows without marks, and from there on environment and model take turns (NeMo-RL, utils/logger.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...tokens.families import find_family
from ...tokens.templates import RENDERED, UNSPLIT, Conversation, parse_conversation
from ...trajectory import Message
from .mapping import Content
from .message import answer, message_of
from .rows import RowError


def messages_of_chunks(chunks: list[Any], content: Content) -> Conversation:
    """Return the conversation of a list of chunks. Raises RowError for a chunk that is no text."""
    messages: list[Message] = []
    tools: list[dict[str, Any]] = []
    family: str | None = content.family
    for chunk, role in zip(chunks, _roles(chunks), strict=True):
        if not isinstance(chunk, str) and not isinstance(chunk, Mapping):
            raise RowError("a message that is neither text nor an object")
        message = {"role": role, "content": chunk} if isinstance(chunk, str) else message_of(chunk, content)
        text = message["content"]
        if not isinstance(text, str):
            messages.append(message)
        elif message["role"] == "assistant":
            messages.append({**message, **answer(text, family)})
        else:
            found = _rendered(text)
            family = found.family if found and found.family else family
            messages += found.messages if found else [message]
            tools += found.tools if found else []
    return Conversation(messages, tools, RENDERED if family else UNSPLIT, (), family)


def _roles(chunks: list[Any]) -> list[str]:
    """Return a role for each chunk: the first chunk without a template's marks, or the second chunk, is an answer."""
    marked = [isinstance(chunk, str) and find_family(chunk) is not None for chunk in chunks]
    first = next((n for n, is_marked in enumerate(marked) if not is_marked and n), 1)
    if not any(marked):
        first = 1
    return ["user" if n < first else ("assistant", "environment")[(n - first) % 2] for n in range(len(chunks))]


def _rendered(text: str) -> Conversation | None:
    """Return what a chunk with marks says, without the empty turn that it may open at its end."""
    if find_family(text) is None:
        return None
    found = parse_conversation(text)
    said = [message for message in found.messages if message["role"] != "assistant" or message["content"]]
    return Conversation(said, found.tools, found.content_kind, (), found.family) if said else None
