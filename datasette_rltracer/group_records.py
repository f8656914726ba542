"""What a group's page reads from files: the prompt, what is expected, and the last words of each trajectory."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rltracer_sqlite.messages import content_text
from rltracer_sqlite.thoughts import split_thoughts
from rltracer_sqlite.trajectory import Trajectory
from rltracer_sqlite.truth import truth_text

from .bounds import ask
from .conversation import Page, Turn, read_page
from .expected import Expected, expected_of_all
from .records import UNREADABLE, load_for_page, remarks_of, roots_of
from .text import Text

if TYPE_CHECKING:
    from datasette.app import Datasette

LAST_WORDS_LIMIT = 3_000_000  # bytes of all records of a group that are read for their last words unasked
MOST_LAST_WORDS = 64_000_000  # and when asked
LONGEST_LAST_WORDS = 200
MOST_TRIES = 5  # records that are tried for the prompt, where the first cannot be read


@dataclass
class PromptRecords:
    """What was read: the messages of the prompt, from the first record that can be read, and the last words of each.

    `why` is what is remarked on that record where it has no text, such as what to do for it. `expected` is the answer
    that all records which were read expect.
    """

    prompt: Page[Turn] | None = None
    words: dict[int, Text | None] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)
    truths: set[str | None] = field(default_factory=set)

    @property
    def expected(self) -> Expected | None:
        """The answer that the records expect; None where none could be read."""
        return expected_of_all(self.truths) if self.truths else None

    def add(self, identity: int, trajectory: Trajectory) -> None:
        """Note what a record says."""
        if self.prompt is None:
            self.prompt = read_page(trajectory.prompt)
            self.why = [] if trajectory.messages else remarks_of(trajectory)
        self.words[identity] = last_words(trajectory.messages)
        self.truths.add(truth_text(trajectory.metadata.get("truth")))


async def read_records(
    datasette: Datasette, database: str, first: int | None, identities: Sequence[int], reads_words: bool
) -> PromptRecords:
    """Return what the records of a prompt say: the first that can be read, or all where `reads_words`."""

    def read(connection: sqlite3.Connection) -> PromptRecords:
        roots = roots_of(datasette, database)
        found = PromptRecords()
        for identity in dict.fromkeys([first, *identities] if first is not None else identities):
            if (found.prompt is not None or len(found.words) >= MOST_TRIES) and not reads_words:
                break
            try:
                found.add(identity, load_for_page(connection, identity, roots))
            except UNREADABLE:
                found.words[identity] = None
        return found

    return await ask(datasette, database, read)


def last_words(messages: Sequence[Mapping[str, Any]]) -> Text | None:
    """Return the end of what the assistant said last, without the thoughts before it; None where it said nothing."""
    for message in reversed(messages):
        text = content_text(message.get("content")).strip() if message.get("role") == "assistant" else ""
        if text:
            answer = split_thoughts(text)[1].lstrip() or text
            return Text(answer[-LONGEST_LAST_WORDS:], len(answer))
    return None
