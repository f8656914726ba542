"""A task of the sample run, and the draft of what one rollout says about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

Record = dict[str, Any]


@dataclass
class Draft:
    """A message graph with its scores, before it is put in the shape of a record."""

    nodes: list[Record] = field(default_factory=list)  # parent (or None), message, sampled, semantic_parents
    last: int | None = None  # the node that the next message follows; None starts a new root
    rewards: dict[str, tuple[float | None, float]] = field(default_factory=dict)  # name -> score, weight
    metrics: dict[str, float | None] = field(default_factory=dict)
    info: Record = field(default_factory=dict)
    slips: list[tuple[int, str]] = field(default_factory=list)  # a sampled node, and its words that are the mistake
    stop: str = "agent_completed"
    cut: bool = False  # the last message ran into the limit of output tokens
    errors: list[Record] = field(default_factory=list)

    def add(self, message: Record, sampled: bool = False) -> int:
        """Append a message after `last` and return its node."""
        present = {key: value for key, value in message.items() if value is not None}
        self.nodes.append({"parent": self.last, "message": present, "sampled": sampled, "semantic_parents": []})
        self.last = len(self.nodes) - 1
        return self.last

    def say(self, content: str, thought: str | None = None) -> int:
        """Append an answer of the model."""
        return self.add({"role": "assistant", "content": content, "reasoning_content": thought}, sampled=True)

    def slip(self, words: str) -> None:
        """Say which words of the latest message of the model are its mistake."""
        self.slips.append((max(number for number, node in enumerate(self.nodes) if node["sampled"]), words))

    def tie(self, node: int, parent: int, meaning: str) -> None:
        """Say that a node of one branch follows from a node of another."""
        self.nodes[node]["semantic_parents"].append({"node": parent, "type": meaning})

    def call(self, tool: str, arguments: Mapping[str, Any] | str, thought: str | None = None) -> int:
        """Append a tool call without text; arguments that are a string are kept as the model wrote them."""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls = [{"id": f"call_{len(self.nodes)}", "type": "function", "name": tool, "arguments": text}]
        return self.add({"role": "assistant", "reasoning_content": thought, "tool_calls": calls}, sampled=True)

    def answer(self, call: int, output: str) -> int:
        """Append a tool's answer to the call at node `call`."""
        made = self.nodes[call]["message"]["tool_calls"][0]
        self.last = call
        return self.add({"role": "tool", "tool_call_id": made["id"], "content": output, "name": made["name"]})

    def bash(self, command: str, output: str, thought: str | None = None) -> int:
        """Append a command and what it printed."""
        return self.answer(self.call("bash", {"command": command}, thought), output)

    def turns(self) -> int:
        """Return how many messages the model sampled."""
        return sum(node["sampled"] for node in self.nodes)

    def score(self, passed: bool, rewards: Mapping[str, tuple[float, float]]) -> None:
        """Set the rewards, and the metrics that every scored rollout of the run has."""
        calls = sum("tool_calls" in node["message"] for node in self.nodes)
        self.rewards = dict(rewards)
        self.metrics = {
            "correct_final_label": float(passed),
            "num_turns": float(self.turns()),
            "num_tool_calls": float(calls),
        }


Attempt = Callable[[Draft, bool, Random], None]


@dataclass(frozen=True)
class Task:
    """One prompt: what is asked, and how a rollout that passes or fails goes on."""

    name: str
    env: str
    kind: str
    idx: int
    prompt: str | list[Record]
    system_prompt: str
    answer: str
    attempt: Attempt
    rollouts: int = 4
    tools: tuple[Record, ...] = ()
    max_turns: int = 1

    def start(self) -> Draft:
        """Return a draft that holds the prompt's messages."""
        draft = Draft()
        draft.add({"role": "system", "content": self.system_prompt})
        messages = [{"role": "user", "content": self.prompt}] if isinstance(self.prompt, str) else self.prompt
        for message in messages:
            draft.add(message)
        return draft
