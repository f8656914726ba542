"""What was said in a trace: the messages of each branch, in every layout that a record has had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...messages import normal_message, tool_definitions
from ...trajectory import Message
from .graph import branch_paths


class Branches(NamedTuple):
    """The branches of a trace: each as its messages, as numbers of nodes, and whether the policy sampled in it."""

    messages: list[list[Message]]
    nodes: list[list[int]]
    trained: list[bool]


def branches_of(trace: Mapping[str, Any]) -> Branches:
    """Return the branches of a trace; a record of verifiers v0 has one, of its prompt and completion."""
    nodes = trace.get("nodes")
    if isinstance(nodes, list):
        paths = branch_paths(nodes)
        messages = [node_message(node) for node in nodes]
        trained = [any(_is_sampled(nodes[number]) for number in path) for path in paths]
        return Branches([[messages[number] for number in path] for path in paths], paths, trained)
    if not is_row(trace):
        return Branches([], [], [])
    said = _prompt_and_completion(trace)
    return Branches([said], [list(range(len(said)))], [True])


def is_row(trace: Mapping[str, Any]) -> bool:
    """Say whether a record without nodes is a row of v0; an episode that failed has no messages."""
    return ("prompt" in trace or "completion" in trace) and trace.get("traces") is None


def node_message(node: Any) -> Message:
    """Return the normal message of a node; a node without one is an empty message."""
    message = node.get("message") if isinstance(node, dict) else None
    return normal_message(message if isinstance(message, dict) else {})


def recorded_tools(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the definitions of a trace's tools in OpenAI's nested form, under whichever name they were recorded."""
    return tool_definitions(trace.get("tools") or trace.get("tool_defs") or trace.get("oai_tools"))


def _is_sampled(node: Any) -> bool:
    return isinstance(node, dict) and bool(node.get("sampled"))


def _prompt_and_completion(row: Mapping[str, Any]) -> list[Message]:
    messages: list[Message] = []
    for part, role in (("prompt", "user"), ("completion", "assistant")):
        recorded = row.get(part)
        if isinstance(recorded, str):
            messages.append({"role": role, "content": recorded})
        elif isinstance(recorded, list):
            messages += [normal_message(message) for message in recorded if isinstance(message, dict)]
    return messages
