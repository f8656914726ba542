"""Finding a text within one trajectory: how often it stands in which message."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from .conversation import TEXT_LIMIT, read_page
from .raw_text import raw_message

LONGEST_FIND = 200  # characters
MOST_CHARACTERS = 20_000_000  # that are looked through
MOST_LISTED = 200  # messages with a match that are listed
# White space that is more, or other, than one space.
UNEVEN = re.compile(r"\s{2,}|[^\S ]")


@dataclass(frozen=True)
class FoundIn:
    """How often a text stands in a message; `beyond`: the first time behind what is shown of the message."""

    message: int
    count: int
    beyond: bool


@dataclass(frozen=True)
class Find:
    """What is looked for, and where it stands. `searched` messages were looked through."""

    text: str
    listed: list[FoundIn] = field(default_factory=list)
    count: int = 0
    messages: int = 0  # with a match
    searched: int = 0

    def spans(self, text: str, most: int) -> list[tuple[int, int]]:
        """Return the first and the last place of each match in a text, at most so many."""
        even, uneven = _even(text)
        wanted, places = _lower(self.text), [place for place, _ in uneven]
        # Found in the even text, whose places lie before those in the text by what was left out up to there.
        behind = [*_sums(uneven)]

        def place(at: int) -> int:
            return at + behind[bisect_right(places, at)]

        found: list[tuple[int, int]] = []
        start = even.find(wanted)
        while start >= 0 and len(found) < most:
            end = start + len(wanted)
            found.append((place(start), place(end - 1) + 1))
            start = even.find(wanted, end)
        return found


def find_in(messages: Sequence[Mapping[str, Any]], text: str | None, view: str = "conversation") -> Find | None:
    """Return where a text stands in the messages of a branch, or None where nothing is looked for.

    Upper and lower case are the same, and so are all stretches of white space. A text is looked for as it is, since
    Python does that in a time that grows with the length of both; an expression for it takes their product.
    """
    wanted = " ".join((text or "").split())[:LONGEST_FIND].rstrip()
    if not wanted:
        return None
    same = _lower(wanted)
    listed: list[FoundIn] = []
    count = found = searched = 0
    room = MOST_CHARACTERS
    for number, message in enumerate(messages):
        if room <= 0:
            break
        here, beyond = 0, False
        for shown in _texts(message, number, view):
            times = _plain(shown).count(same)
            beyond = beyond or (not here and times > 0 and same not in _plain(shown[:TEXT_LIMIT]))
            here += times
            room -= len(shown)
        searched += 1
        if here:
            found += 1
            count += here
            if len(listed) < MOST_LISTED:
                listed.append(FoundIn(number, here, beyond))
    return Find(wanted, listed, count, found, searched)


def _plain(text: str) -> str:
    """Return a text in lower case with one space in the place of each stretch of white space."""
    return UNEVEN.sub(" ", _lower(text))


def _lower(text: str) -> str:
    """Return a text in lower case and of the same length: a letter that would become two stays as it is."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(_same_length(character) for character in text)


def _same_length(character: str) -> str:
    lower = character.lower()
    return lower if len(lower) == 1 else character


def _even(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text as `_plain` does; where in it white space was shortened, as the place after it and by how much."""
    uneven: list[tuple[int, int]] = []
    shorter = 0
    for found in UNEVEN.finditer(text):
        left_out = found.end() - found.start() - 1
        if left_out:
            uneven.append((found.start() - shorter + 1, left_out))
            shorter += left_out
    return _plain(text), uneven


def _sums(uneven: Sequence[tuple[int, int]]) -> Iterator[int]:
    total = 0
    yield total
    for _, left_out in uneven:
        total += left_out
        yield total


def _texts(message: Mapping[str, Any], number: int, view: str) -> Iterator[str]:
    """Yield the texts of a message as the page shows them, uncut."""
    if view == "raw":
        yield from (piece.text.text for piece in raw_message(message, number, True).pieces)
        return
    for turn in read_page([message], 0, 0).turns:
        yield from (text.text for text in turn.reasoning)
        yield from (part.text.text for part in turn.parts if part.text is not None)
        for call in turn.calls:
            yield call.name or ""
            yield from (argument.text.text for argument in call.arguments.named)
            if call.arguments.text:
                yield call.arguments.text.text


def find_context(find: Find | None, address: str) -> dict[str, Any]:
    """Return what the form of a page needs: what is looked for, and the address of the page in parts."""
    url, _, query = address.partition("?")
    return {"find": find, "find_url": url, "find_hidden": parse_qsl(query, keep_blank_values=True)}
