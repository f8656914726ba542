"""OpenAI Responses items folded into messages: reasoning, text and calls of one answer are one assistant message.

Item types and their fields are those of the Responses API: message, reasoning, function_call and
function_call_output. An item of another type becomes a message of that type, so that nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...messages import normal_message, tool_call
from ...trajectory import Message

TEXT_PARTS = ("output_text", "input_text", "text", "summary_text", "reasoning_text", "refusal")


def messages_of_items(items: Sequence[Any]) -> list[Message]:
    """Return the messages that a list of Responses items stands for."""
    folding = _Folding()
    for item in items:
        if isinstance(item, Mapping):
            folding.add(item)
    return folding.messages


class _Folding:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.names: dict[str, str] = {}  # call id -> tool
        self.open: Message | None = None  # the answer that reasoning and calls still belong to

    def add(self, item: Mapping[str, Any]) -> None:
        kind = item.get("type") or "message"
        if kind == "message":
            self._add_message(item)
        elif kind == "reasoning":
            self._add_reasoning(item)
        elif kind == "function_call":
            self._add_call(item)
        elif kind == "function_call_output":
            self._add_output(item)
        else:
            self.open = None
            self.messages.append({"role": str(kind), "content": json.dumps(item, ensure_ascii=False)})

    def _add_message(self, item: Mapping[str, Any]) -> None:
        role = str(item.get("role") or "")
        content = _content(item.get("content"))
        if role != "assistant":
            self.open = None
            self.messages.append(normal_message({"role": role, "content": content}))
            return
        message = self._answer(begins=self.open is not None and self.open.get("content") is None)
        message["content"] = content

    def _add_reasoning(self, item: Mapping[str, Any]) -> None:
        text = joined_text(item.get("content")) or joined_text(item.get("summary"))
        # Reasoning comes before what it is about, so behind a text or a call it begins the next answer.
        said = self.open is not None and (self.open.get("content") is not None or "tool_calls" in self.open)
        message = self._answer(begins=self.open is not None and not said)
        if text:
            before = message.get("reasoning_content")
            message["reasoning_content"] = f"{before}\n{text}" if before else text

    def _add_call(self, item: Mapping[str, Any]) -> None:
        message = self._answer(begins=self.open is not None)
        call = tool_call({**item, "id": item.get("call_id") or item.get("id"), "type": "function"})
        message.setdefault("tool_calls", []).append(call)
        if isinstance(call["id"], str):
            self.names[call["id"]] = str(call["function"]["name"])

    def _add_output(self, item: Mapping[str, Any]) -> None:
        self.open = None
        call_id, output = item.get("call_id"), item.get("output")
        content = output if isinstance(output, str) else _content(output)
        message: Message = {"role": "tool", "content": content, "tool_call_id": call_id}
        if isinstance(call_id, str) and call_id in self.names:
            message["name"] = self.names[call_id]
        self.messages.append(message)

    def _answer(self, begins: bool) -> Message:
        """Return the assistant message that what comes next belongs to: the open one, or a new one."""
        if self.open is None or not begins:
            self.open = {"role": "assistant", "content": None}
            self.messages.append(self.open)
        return self.open


def _content(content: Any) -> Any:
    """Return content as text where all of its parts are text, else its parts as recorded."""
    if not isinstance(content, list):
        return content
    if all(isinstance(part, Mapping) and part.get("type") in TEXT_PARTS for part in content):
        return joined_text(content)
    return content


def joined_text(parts: Any) -> str:
    """Return the texts of a list of parts, one after the other."""
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, list):
        return ""
    texts = (part.get("text", part.get("refusal")) for part in parts if isinstance(part, Mapping))
    return "".join(text for text in texts if isinstance(text, str))
