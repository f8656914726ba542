"""What is counted of the rows of an export while they are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .lines import Row
from .met import Met

if TYPE_CHECKING:
    from ..messages import Message

SPOKEN = ("messages", "chosen", "rejected")  # columns with what a policy said
THINK = ("<think>", "</think>")  # a template may have put the first one into the prompt


@dataclass
class Written:
    """What was met while rows were made."""

    rows_of: Counter[int] = field(default_factory=Counter)  # rows, by the number of their run
    distinct: int = 0  # rows of different content
    repeated: Met = field(default_factory=Met)  # rows that are written, though one of the same content stands before
    repeats: int = 0  # rows left out, since one of the same content stands before
    rejected: Counter[str] = field(default_factory=Counter)  # by reason, over all attempts
    has_rejected: bool = False  # in this attempt
    is_preview: bool = False  # nothing is written of the rows
    is_beginning: bool = False  # the rows are only the first ones, as those of a preview may be
    redacted: Counter[str] = field(default_factory=Counter)
    without_tools: Met = field(default_factory=Met)  # rows with tool calls and no tool definitions
    of_branches: int = 0  # rows that hold one branch of a trajectory of several
    unanswered: Counter[str] = field(default_factory=Counter)  # rows whose last message is no answer, by column
    last_roles: Counter[str] = field(default_factory=Counter)  # of these messages
    ending: Met = field(default_factory=Met)  # with these messages
    with_tags: Met = field(default_factory=Met)  # rows with <think> in the content of an answer
    with_reasoning: int = 0  # rows with reasoning_content beside the content of an answer

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return self.rows_of.total()

    def count(self, row: Row, trajectories: Sequence[str], is_one_of_several: bool) -> None:
        """Count a row of these trajectories; `is_one_of_several`: it holds one branch of a trajectory of several."""
        columns = conversations_in(row)
        self.of_branches += is_one_of_several
        of_columns = list(zip(columns.items(), trajectories, strict=False))
        for (name, said), trajectory in of_columns:
            if (role := said[-1].get("role")) != "assistant":
                self.unanswered[name] += 1
                self.last_roles[str(role)] += 1
                self.ending.add([trajectory])
        if "tools" not in row and any(map(calls_in, columns.values())):
            self.without_tools.add(trajectory for (_, said), trajectory in of_columns if calls_in(said))
        if tagged := [trajectory for (_, said), trajectory in of_columns if any(map(_has_tags, said))]:
            self.with_tags.add(tagged)
        self.with_reasoning += any("reasoning_content" in message for said in columns.values() for message in said)


def conversations_in(row: Row) -> dict[str, list[Message]]:
    """Return the conversations of a row by their column: one of an SFT row, two of a pair, none of an RL row."""
    return {name: row[name] for name in SPOKEN if name in row}


def calls_in(messages: list[Message]) -> int:
    """Return how many tool calls there are."""
    return sum(len(message.get("tool_calls", ())) for message in messages)


def _has_tags(message: Message) -> bool:
    """Say whether an answer has the tags of reasoning in its content."""
    if message.get("role") != "assistant":
        return False
    content = message["content"]
    if isinstance(content, str):
        return "<" in content and any(tag in content for tag in THINK)  # which most texts have not, as is soon known
    texts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return any(tag in text for text in texts if isinstance(text, str) for tag in THINK)
