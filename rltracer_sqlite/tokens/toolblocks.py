"""The tools that a rendered prompt lists, and the system text without them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..messages import tool_definitions

HEADING = "# Tools\n\n"
OPEN, CLOSE = "<tools>\n", "\n</tools>"  # with their line breaks: the heading names them, too
INSTRUCTION_ENDS = ("</IMPORTANT>", "</tool_call>")  # the last words of the instructions behind the list
NAMESPACE = "namespace functions {"
NAMESPACE_TOOL = re.compile(r"^type (?P<name>[\w.-]+) = \(", re.M)

Tool = dict[str, Any]


def split_tools(text: str) -> tuple[str, list[Tool]]:
    """Return a system turn's own text, and the tools that the template listed in it.

    Knows the block of Qwen's and GLM's templates: a heading, the tools as JSON or as XML, and how to call them.
    A list of tools in other surroundings is read, and its text stays.
    """
    begin = text.find(OPEN)
    end = text.find(CLOSE, begin)
    if begin < 0 or end < 0:
        return text, _namespace_tools(text)
    tools = listed_tools(text[begin + len(OPEN) : end])
    heading = text.rfind(HEADING, 0, begin)
    before = text[: max(heading, 0)]
    if not tools or heading < 0 or (before and not before.endswith("\n\n")):
        return text, tools
    return _own_text(before, text[end + len(CLOSE) :]), tools


def _own_text(before: str, after: str) -> str:
    """Return what is left of a system turn around its block of tools. Some templates put it behind the block."""
    stops = [after.rfind(mark) + len(mark) for mark in INSTRUCTION_ENDS if mark in after]
    rest = after[max(stops) :] if stops else after
    return before.removesuffix("\n\n") + rest.removeprefix("\n\n" if not before else "")


def listed_tools(text: str) -> list[Tool]:
    """Return the tools of a list: JSON values one after the other, one JSON list, or Qwen3-Coder's XML."""
    text = text.strip()
    if text.startswith("<function>"):
        return [_xml_tool(part) for part in text.split("<function>")[1:]]
    values = list(_json_values(text))
    flat = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    return tool_definitions(flat)


def _json_values(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(strict=False), 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield value
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1


def _xml_tool(text: str) -> Tool:
    head, _, parameters = text.partition("<parameters>")
    properties = {}
    for part in parameters.split("<parameter>")[1:]:
        name = _between(part, "name")
        if name:
            described = {"type": _between(part, "type"), "description": _between(part, "description")}
            properties[name] = {key: value for key, value in described.items() if value is not None}
    function: Tool = {"name": _between(head, "name") or ""}
    description = _between(head, "description")
    if description is not None:
        function["description"] = description
    function["parameters"] = {"type": "object", "properties": properties}
    return {"type": "function", "function": function}


def _between(text: str, tag: str) -> str | None:
    begin = text.find(f"<{tag}>")
    end = text.find(f"</{tag}>", begin)
    return text[begin + len(tag) + 2 : end].strip() if 0 <= begin < end else None


def _namespace_tools(text: str) -> list[Tool]:
    """Return the names and descriptions of tools that Harmony lists as a TypeScript namespace."""
    begin = text.find(NAMESPACE)
    if begin < 0:
        return []
    lines = text[begin:].split("\n")
    tools: list[Tool] = []
    comments: list[str] = []
    for line in lines:
        match = NAMESPACE_TOOL.match(line)
        if match:
            function = {"name": match["name"], "description": "\n".join(comments)}
            tools.append({"type": "function", "function": {key: value for key, value in function.items() if value}})
        if line.startswith("//"):
            comments.append(line[2:].strip())
        else:
            comments = []
    return tools
