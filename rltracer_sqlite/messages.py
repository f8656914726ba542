"""The normal form of a message, and what identifies a prompt.

A normal message is a dictionary with `role` and `content` as recorded (text, a list of parts, or None),
plus `reasoning_content`, `tool_calls`, `tool_call_id` and `name` where they are recorded. Tool calls have
OpenAI's nested form: {"id", "type": "function", "function": {"name", "arguments"}}, arguments a string.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

Message = dict[str, Any]

PREVIEW_CHARACTERS = 300
SLICE = 1 << 20  # characters
JSON = json.JSONEncoder(ensure_ascii=False)
EMPTY_PREVIEW = "(empty prompt)"


def normal_message(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded message in the normal form; text, parts and unknown keys are kept as they are."""
    message = {key: value for key, value in recorded.items() if value is not None or key == "content"}
    message["role"] = str(recorded.get("role") or "")
    message.setdefault("content", None)
    calls = message.pop("tool_calls", None)
    if calls:
        message["tool_calls"] = [tool_call(call) for call in (calls if isinstance(calls, list) else [calls])]
    return message


def tool_call(recorded: Any) -> dict[str, Any]:
    """Return a tool call in OpenAI's nested form, from the nested, the flat or the JSON-string form.

    What cannot be understood keeps its text as the arguments of a call without a name.
    """
    call = _decoded(recorded) if isinstance(recorded, str) else recorded
    if not isinstance(call, Mapping):
        return {"id": None, "type": "function", "function": {"name": None, "arguments": _text(recorded)}}
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    normal: dict[str, Any] = {
        "id": call.get("id"),
        "type": "function",
        "function": {"name": _name(call), "arguments": _text(inner.get("arguments", call.get("arguments", "")))},
    }
    # The Responses API knows further kinds of tool; what it adds to a function call is kept beside it.
    if call.get("namespace") is not None:
        normal["namespace"] = call["namespace"]
    if call.get("type") not in (None, "function"):
        normal["recorded_type"] = call["type"]
    return normal


def called_name(recorded: Any) -> Any:
    """Return the name that `tool_call` gives a recorded call, whatever it is; None where it has none."""
    call = _decoded(recorded) if isinstance(recorded, str) else recorded
    return _name(call) if isinstance(call, Mapping) else None


def _name(call: Mapping[str, Any]) -> Any:
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    name = inner.get("name", call.get("name"))
    return function if name is None and isinstance(function, str) else name


def tool_definitions(recorded: Any) -> list[dict[str, Any]]:
    """Return tool definitions in OpenAI's nested form, from nested, flat or JSON-string definitions."""
    tools = _decoded(recorded) if isinstance(recorded, str) else recorded
    if isinstance(tools, Mapping):
        tools = [tools]
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        return []
    decoded = (_decoded(tool) if isinstance(tool, str) else tool for tool in tools)
    return [_tool_definition(tool) for tool in decoded if isinstance(tool, Mapping)]


def _tool_definition(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool.get("function")
    if isinstance(function, Mapping):
        return dict(tool)
    known = {key: tool[key] for key in ("name", "description", "parameters", "strict") if tool.get(key) is not None}
    if isinstance(function, str):
        known.setdefault("name", function)  # as in a call
    taken = {*known, "type", "function"}
    rest = {key: value for key, value in tool.items() if key not in taken and value is not None}
    return {"type": "function", "function": known, **rest}


def content_text(content: Any, gap: str = "") -> str:
    """Return the text of a message's content; a part that is no text is named in square brackets, between gaps."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, Sequence):
        return "".join(_part_text(part, gap) for part in content)
    return _text(content)


def _part_text(part: Any, gap: str = "") -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        if isinstance(part.get("text"), str):
            return str(part["text"])
        return f"{gap}[{part.get('type') or 'part'}]{gap}"
    return _text(part)


def prompt_context(messages: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages before the first assistant turn."""
    context = []
    for message in messages:
        if message.get("role") == "assistant":
            break
        context.append(message)
    return context


def prompt_key(context: Iterable[Mapping[str, Any]]) -> str:
    """Return the sha256 of the (role, text) of a prompt's messages, in hexadecimal.

    White space around a text is left out, since chat templates differ in it; other parts than text
    count by their content, so that the same question about two images is two prompts.
    """
    digest = sha256()
    for message in context:
        text = _identity(message.get("content")).strip()
        # The length before the text keeps two splits of the same characters apart.
        _add(digest, f"{message.get('role') or ''}\0{len(text)}\0")
        _add(digest, text)
        digest.update(b"\0")
    return digest.hexdigest()


def _add(digest: Any, text: str) -> None:
    # In slices, since a text may be a large part of a record of hundreds of megabytes.
    for start in range(0, len(text), SLICE):
        digest.update(text[start : start + SLICE].encode("utf-8", "surrogatepass"))


def _identity(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Sequence):
        return _text(content)
    pieces = []
    for part in content:
        is_text = isinstance(part, str) or (isinstance(part, Mapping) and isinstance(part.get("text"), str))
        pieces.append(_part_text(part) if is_text else _digest(part))
    return "".join(pieces)


def _digest(part: Any) -> str:
    digest = sha256()
    for text in JSON.iterencode(part):
        _add(digest, text)
    return digest.hexdigest()


def is_empty(context: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a prompt has no text at all, so that its words cannot identify it."""
    return not any(_identity(message.get("content")).strip() for message in context)


def preview(context: Sequence[Mapping[str, Any]]) -> str:
    """Return the first user text of a prompt in one line, cut at PREVIEW_CHARACTERS."""
    ordered = sorted(context, key=lambda message: message.get("role") != "user")
    lines = (one_line(content_text(message.get("content"), " ")) for message in ordered)
    return next((line for line in lines if line), EMPTY_PREVIEW)


def one_line(text: str) -> str:
    """Return a text as a single line of at most PREVIEW_CHARACTERS, with an ellipsis where it was cut."""
    # Joining words costs time on a long text, so cut it first, with room for the white space that goes.
    text = text.lstrip()
    start = text[: 2 * PREVIEW_CHARACTERS]
    line = " ".join(start.replace("\0", "\N{REPLACEMENT CHARACTER}").split())
    is_cut = len(start) < len(text) or len(line) > PREVIEW_CHARACTERS
    return line[: PREVIEW_CHARACTERS - 1] + "…" if is_cut else line


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else JSON.encode(value)
