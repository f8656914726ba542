"""A decoded trajectory, as every source makes it and pages, exports and Python show it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .amounts import plural
from .messages import Message as Message
from .messages import prompt_context
from .reprs import short

if TYPE_CHECKING:
    from .tokens.streams import Tokens


@dataclass(frozen=True)
class Trajectory:
    """One decoded trajectory: its messages, and what is recorded about it.

    `messages` is the last branch and `branches` are all of them, never merged: each a list of {"role", "content", …},
    with "reasoning_content", "tool_calls", "tool_call_id" and "name" where they are recorded. "content" is text, a list
    of parts, or None; tool calls have OpenAI's nested form. `branch_nodes` has the number of the record's node behind
    each message of each branch, and `trained` says of each branch whether it holds a message that the policy sampled.
    `prompt` is what was asked before the first answer, `tools` are the tool definitions.

    `metadata` has, with None for what is not recorded: "id" (in the index), "success" (by the run's rule, in the
    index: True, False, or None where it is unscored), "uid" (as recorded), "step", "split", "env", "agent", "task",
    "truth" (the expected answer, as recorded), "reward", "rewards" ({name: {"score", "weight"}}), "metrics" ({name:
    number}), "info", "advantage", "logprobs" ({"mean", "min", "count"}, in nats), "tool_calls" (how many), "tools" (the
    names of those called), "completion" ({"stop_condition", "truncated", "prompt_tokens", "completion_tokens",
    "turns"}), "timing" (seconds, as recorded), "errors", "effective", "policy_version", "episode_id", "group_id",
    "locator" ({"path", "line", "byte_offset", "byte_length", "item"}), "annotations" (where later facts stand) and,
    where there are any, "remarks" on how it was read and "outputs" (how many outputs the rollout has where each is a
    row, and a branch that goes on from the one before).

    `raw` is the record as it stands in its file, `record` the decoded record of this trajectory alone; of a rollout of
    several outputs that of the last, with those of all under "outputs".
    """

    messages: list[Message]
    metadata: dict[str, Any]
    branches: list[list[Message]] = field(default_factory=list)
    branch_nodes: list[list[int]] = field(default_factory=list)
    trained: list[bool] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    raw: bytes = b""
    record: dict[str, Any] = field(default_factory=dict)
    read_tokens: Callable[[], list[Tokens | None]] = field(default=list, repr=False, compare=False)

    def __repr__(self) -> str:
        facts = [plural(len(self.messages), "message")]
        facts += [plural(len(self.branches), "branch")] if len(self.branches) > 1 else []
        known = {name: self.metadata.get(name) for name in ("reward", "step", "split", "env")}
        facts += [f"{name} {short(value)}" for name, value in known.items() if value is not None]
        identity = self.metadata.get("id", self.metadata.get("uid"))
        return f"<Trajectory{'' if identity is None else f' {short(identity)}'}: {', '.join(facts)}>"

    @property
    def prompt(self) -> list[Message]:
        """The messages before the first answer, on the branch on which it was given."""
        return [dict(message) for message in prompt_context(self._first_branch)]

    @property
    def _first_branch(self) -> list[Message]:
        branches = self.branches or [self.messages]
        if len(self.branch_nodes) != len(branches):
            return branches[0]
        firsts = [
            next((node for node, m in zip(nodes, branch, strict=False) if m.get("role") == "assistant"), math.inf)
            for nodes, branch in zip(self.branch_nodes, branches, strict=True)
        ]
        return branches[firsts.index(min(firsts))]

    @cached_property
    def branch_tokens(self) -> list[Tokens | None]:
        """The tokens of each branch and what is recorded about them; None for a branch without recorded ids.

        They are decoded when they are first asked for. Raises SourceError for a tokenizer that cannot be read.
        """
        return self.read_tokens()

    @property
    def tokens(self) -> Tokens | None:
        """The tokens along `messages`, the last branch; None where no token ids are recorded."""
        return self.branch_tokens[-1] if self.branch_tokens else None
