"""What a group's page reads from files: the prompt from one record, and the last words of each trajectory."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rltracer_sqlite.messages import content_text

from .bounds import ask
from .conversation import Page, Turn, read_page
from .records import UNREADABLE, load_for_page, remarks_of, roots_of
from .text import Text

if TYPE_CHECKING:
    from datasette.app import Datasette

LAST_WORDS_LIMIT = 3_000_000  # bytes of all records of a group that are read for their last words unasked
MOST_LAST_WORDS = 64_000_000  # and when asked
LONGEST_LAST_WORDS = 200
MOST_TRIES = 5  # records that are tried for the prompt, where the first cannot be read


async def read_records(
    datasette: Datasette, database: str, first: int | None, identities: Sequence[int], reads_words: bool
) -> tuple[Page[Turn] | None, dict[int, Text | None], list[str]]:
    """Return the messages of the prompt, from the first record that can be read, and the last words of each row.

    Last comes what is remarked on that record where it has no text, such as what to do for it.
    """

    def read(connection: sqlite3.Connection) -> tuple[Page[Turn] | None, dict[int, Text | None], list[str]]:
        roots = roots_of(datasette, database)
        prompt: Page[Turn] | None = None
        words: dict[int, Text | None] = {}
        why: list[str] = []
        for identity in dict.fromkeys([first, *identities] if first is not None else identities):
            if (prompt is not None or len(words) >= MOST_TRIES) and not reads_words:
                break
            try:
                trajectory = load_for_page(connection, identity, roots)
                messages = trajectory.messages
            except UNREADABLE:
                words[identity] = None
                continue
            if prompt is None:
                prompt = read_page(trajectory.prompt)
                why = [] if messages else remarks_of(trajectory)
            words[identity] = last_words(messages)
        return prompt, words, why

    return await ask(datasette, database, read)


def last_words(messages: Sequence[Mapping[str, Any]]) -> Text | None:
    """Return the end of what the assistant said last, or None where it said nothing."""
    for message in reversed(messages):
        text = content_text(message.get("content")).strip() if message.get("role") == "assistant" else ""
        if text:
            return Text(text[-LONGEST_LAST_WORDS:], len(text))
    return None
