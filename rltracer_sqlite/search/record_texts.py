"""The text of a JSON record straight from its bytes: only the fields that hold text are decoded.

This is the fast way for verifiers' Traces and Episodes and for the rows before them. It gives up, by returning
None, on whatever is not plainly one of these, and then the source's own `load` decides.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..messages import tool_call
from ..sources.prime_rl.record_decoding import ARRAY, without_arrays
from .document import joined, message_text

TextContent = str | list[Any] | None


class TextMessage(msgspec.Struct, gc=False):
    """The fields of a recorded message that hold text."""

    content: TextContent = None
    reasoning_content: TextContent = None
    reasoning: TextContent = None
    tool_calls: list[Any] | None = None


class TextNode(msgspec.Struct, gc=False):
    message: TextMessage | None = None


class TextRecord(msgspec.Struct, gc=False):
    """A Trace, an Episode or a row, by which fields are there."""

    id: Any = None
    rollout_id: Any = None
    trace_id: Any = None
    nodes: list[TextNode] | None = None
    traces: list[TextRecord] | None = None
    prompt: str | list[TextMessage] | None = None
    completion: str | list[TextMessage] | None = None


DECODER = msgspec.json.Decoder(TextRecord)


def decode_record(raw: bytes) -> TextRecord | None:
    """Return what a record's bytes hold of text, or None where they are no such record."""
    if not raw.startswith(b"{"):
        return None
    try:
        # The cut needs a byte behind the record, as a line's newline is.
        return DECODER.decode(without_arrays(raw + b"\n", 0, len(raw)) if ARRAY in raw else raw)
    except (ValueError, RecursionError):
        return None


def record_text(record: TextRecord | None, item: int | None, uid: str, shard: str) -> str | None:
    """Return the text of the trajectory that is meant, or None where it is not plainly there."""
    if record is None:
        return None
    trace = record
    if item is not None:
        if record.traces is None or not 0 <= item < len(record.traces):
            return None
        trace = record.traces[item]
    elif record.traces is not None:
        return None
    if uid not in (trace.id, trace.rollout_id, trace.trace_id) and not uid.startswith(f"{shard}@"):
        return None
    if trace.nodes is not None:
        return joined(_text(node.message) for node in trace.nodes)
    parts = [part for part in (trace.prompt, trace.completion) if part is not None]
    return joined(text for part in parts for text in _part_texts(part)) if parts else None


def _part_texts(part: str | list[TextMessage]) -> list[str]:
    return [part] if isinstance(part, str) else [_text(message) for message in part]


def _text(message: TextMessage | None) -> str:
    if message is None:
        return ""
    content = message.content
    if type(content) is str and not message.tool_calls and not message.reasoning_content and not message.reasoning:
        return content  # most messages
    return message_text(
        {
            "content": content,
            "reasoning_content": message.reasoning_content,
            "reasoning": message.reasoning,
            "tool_calls": [tool_call(call) for call in message.tool_calls or ()],
        }
    )
