"""The text behind a message's tokens: ChatML as Qwen's chat template writes it, tool calls in the style of Hermes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from .task import Record

TOOLS = (
    "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>{}\n</tools>\n\n"
    "For each function call, return a json object with function name and arguments within "
    '<tool_call></tool_call> XML tags:\n<tool_call>\n{{"name": <function-name>, "arguments": <args-json-object>}}\n'
    "</tool_call>"
)


class Rendered(NamedTuple):
    """The text of one node: what the template wrote, and behind it what the model did."""

    context: str
    sampled: str

    @property
    def thinking(self) -> str:
        """Return the beginning of what was sampled that is reasoning."""
        before, mark, _ = self.sampled.partition("</think>")
        return before + mark if mark else ""


def render_nodes(nodes: Sequence[Record], tools: Sequence[Record], cut: bool = False) -> list[Rendered]:
    """Return the text of each node of a message graph; along a branch they make up its conversation.

    The model stops at <|im_end|>, so the line break that the template writes there begins the next message.
    With `cut` the last message ran into a limit and has no end.
    """
    rendered = []
    for number, node in enumerate(nodes):
        parent, message = node.get("parent"), node["message"]
        after = "\n" if parent is not None and nodes[parent]["sampled"] else ""
        if node["sampled"]:
            end = "" if cut and number == len(nodes) - 1 else "<|im_end|>"
            rendered.append(Rendered(f"{after}<|im_start|>assistant\n", _answer(message) + end))
        else:
            listed = tools if parent is None else ()
            rendered.append(Rendered(f"{after}{_turn(message, listed)}", ""))
    return rendered


def _turn(message: Record, tools: Sequence[Record]) -> str:
    role, text = message["role"], message["content"]
    if role == "tool":
        role, text = "user", f"<tool_response>\n{text}\n</tool_response>"
    elif tools:
        text += TOOLS.format("".join(f"\n{_json(tool)}" for tool in tools))
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def _answer(message: Record) -> str:
    thought = message.get("reasoning_content")
    parts = [f"<think>\n{thought}\n</think>\n\n"] if thought else []
    calls = [
        f'<tool_call>\n{{"name": "{call["name"]}", "arguments": {call["arguments"]}}}\n</tool_call>'
        for call in message.get("tool_calls", ())
    ]
    return "".join(parts) + "\n".join(filter(None, [message.get("content"), *calls]))


def _json(tool: Record) -> str:
    function = {key: value for key, value in tool.items() if key != "type"}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)
