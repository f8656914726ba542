"""What is counted of the rows of an export while they are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..amounts import shortened
from .lines import Row
from .met import Met

if TYPE_CHECKING:
    from ..messages import Message

SPOKEN = ("messages", "chosen", "rejected")  # columns with what a policy said
LONGEST_KIND = 30  # characters
MOST_KINDS, OTHERS = 20, "others"  # a run may have no end of them
USUAL_ROLES = {"system", "user", "assistant", "tool"}  # that every trainer knows
MOST_ROLES = 20  # a run may have no end of them
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
    other_parts: Met = field(default_factory=Met)  # rows with parts of content that are no text, such as images
    kinds_of_parts: Counter[str] = field(default_factory=Counter)  # of these parts, in words
    in_text: int = 0  # messages whose content is text
    in_parts: int = 0  # messages whose content is a list of parts
    is_of_one_type: bool = False  # they are written as lists of parts, all of them
    with_reasoning: Met = field(default_factory=Met)  # rows with reasoning_content beside the content of an answer
    of_odd_roles: Met = field(default_factory=Met)  # rows with messages of other roles than the usual ones
    odd_roles: Counter[str] = field(default_factory=Counter)  # of these messages
    between: Met = field(default_factory=Met)  # pairs with others than answers after the prompt, as results of tools

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
        self._count_parts(row, columns, trajectories)
        if reasoned := [
            one for (_, said), one in of_columns if any("reasoning_content" in message for message in said)
        ]:
            self.with_reasoning.add(reasoned)
        self._count_roles(row, of_columns, trajectories)

    def _count_roles(
        self, row: Row, of_columns: Sequence[tuple[tuple[str, list[Message]], str]], trajectories: Sequence[str]
    ) -> None:
        """Count messages by role; the prompt of a pair is of both, that of an RL row is all of it."""
        spoken = [(said, trajectory) for (_, said), trajectory in of_columns]
        met: dict[str, None] = {}
        for messages, trajectory in [*spoken, (row.get("prompt") or [], trajectories[0])]:
            if odd := [str(message.get("role")) for message in messages if message.get("role") not in USUAL_ROLES]:
                met[trajectory] = None
                known = self.odd_roles
                known.update(role if role in known or len(known) < MOST_ROLES else OTHERS for role in odd)
        if met:
            self.of_odd_roles.add(met)
        if "chosen" in row and (between := [one for said, one in spoken if any(map(_is_no_answer, said))]):
            self.between.add(between)

    def _count_parts(self, row: Row, columns: Mapping[str, list[Message]], trajectories: Sequence[str]) -> None:
        """Count what messages hold besides text; the prompt of a pair is of both, that of an RL row is all of it."""
        spoken = [*zip(columns.values(), trajectories, strict=False), (row.get("prompt") or [], trajectories[0])]
        met: dict[str, None] = {}
        for messages, trajectory in spoken:
            contents = [message.get("content") for message in messages]
            self.in_text += sum(isinstance(content, str) for content in contents)
            for content in contents:
                if isinstance(content, list):
                    self.in_parts += 1
                    if kinds := [words for part in content if (words := _part_words(part))]:
                        met[trajectory] = None
                        known = self.kinds_of_parts
                        known.update(kind if kind in known or len(known) < MOST_KINDS else OTHERS for kind in kinds)
        if met:
            self.other_parts.add(met)


def conversations_in(row: Row) -> dict[str, list[Message]]:
    """Return the conversations of a row by their column: one of an SFT row, two of a pair, none of an RL row."""
    return {name: row[name] for name in SPOKEN if name in row}


def calls_in(messages: list[Message]) -> int:
    """Return how many tool calls there are."""
    return sum(len(message.get("tool_calls", ())) for message in messages)


def _is_no_answer(message: Message) -> bool:
    return bool(message.get("role") != "assistant")


def _has_tags(message: Message) -> bool:
    """Say whether an answer has the tags of reasoning in its content."""
    if message.get("role") != "assistant":
        return False
    content = message["content"]
    if isinstance(content, str):
        return "<" in content and any(tag in content for tag in THINK)  # which most texts have not, as is soon known
    texts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return any(tag in text for text in texts if isinstance(text, str) for tag in THINK)


def _part_words(part: Any) -> str:
    """Return what a part of content is that is no text, and how it holds that: "image_url with a data URL"; else ""."""
    if not isinstance(part, Mapping) or isinstance(part.get("text"), str):
        return ""
    kind = part.get("type")
    name = shortened(kind, LONGEST_KIND) if isinstance(kind, str) and kind else "a part without a type"
    held = part.get(str(kind), part.get("url"))
    address = held.get("url") if isinstance(held, Mapping) else held
    if not isinstance(address, str):
        return name
    return f"{name} with {'a data URL' if address.startswith('data:') else 'an address or a path'}"
