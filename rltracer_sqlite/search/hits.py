"""What a search has found within each record: read on demand, and bounded."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..sources.base import SourceError
from .best import best_snippet
from .document import Document, Place, document
from .snippets import find_matches

if TYPE_CHECKING:
    from ..roots import Roots

LONGEST_RECORD = 8_000_000  # bytes of one record that are read for a snippet
MOST_BYTES = 32_000_000  # of the records that are read together
MOST_CHARACTERS = 6_000_000  # of the texts that are looked through together


@dataclass(frozen=True)
class Hit:
    """Where a search matches in one record: a stretch of the message that says the most of what was searched for.

    Without a match, `problem` says why there is none.
    """

    text: str = ""  # the stretch, as it stands in the record
    marks: Sequence[tuple[int, int]] = ()  # the matches in it, as (start, end) within `text`
    best: tuple[int, int] = (0, 0)  # the most words that stand closest to each other, as (start, end) within `text`
    before: bool = False  # the message has text before the stretch
    after: bool = False
    place: Place | None = None
    branches: int = 0  # of the record
    matches: int = 0  # in the whole record
    problem: str | None = None
    error: str | None = None  # where the record could not be read: what was said of it, which may name folders


@dataclass
class _Room:
    """How much may still be read."""

    bytes: int = MOST_BYTES
    characters: int = MOST_CHARACTERS


def read_hits(connection: sqlite3.Connection, roots: Roots, rows: Sequence[Mapping[str, Any]], match: str) -> list[Hit]:
    """Return for each row of `trajectories`, of which id and byte_length are used, what a FTS5 query matches in it."""
    room = _Room()
    read = [_read_text(connection, roots, row, room) for row in rows]
    found = iter(find_matches([one.text for one in read if isinstance(one, Document)], match))
    return [_hit(one, next(found), match) if isinstance(one, Document) else one for one in read]


def _read_text(connection: sqlite3.Connection, roots: Roots, row: Mapping[str, Any], room: _Room) -> Document | Hit:
    """Return the text of a record, or where there is no room for it or it cannot be read, that there is no match."""
    from ..loading import load_trajectory

    if row["byte_length"] > min(LONGEST_RECORD, room.bytes):
        return Hit(problem="The record is too long to be read for a list; open it to see the matches.")
    room.bytes -= row["byte_length"]
    try:
        text = document(load_trajectory(connection, row["id"], roots))
    except (SourceError, OSError, RecursionError) as error:
        return Hit(problem="The record cannot be read now.", error=str(error))
    if len(text.text) > room.characters:
        return Hit(problem="The text is too long to be looked through for a list; open it to see the matches.")
    room.characters -= len(text.text)
    return text


def _hit(text: Document, matches: Sequence[tuple[int, int]], query: str) -> Hit:
    snippet = best_snippet(text.text, matches, query, starts=text.starts)
    if snippet.best is None:
        return Hit(problem="The record no longer says what was found when its text was read.")
    begin, stop = text.message(snippet.best[0])
    start, end = max(snippet.start, begin), min(snippet.end, stop)
    return Hit(
        text.text[start:end],
        [(max(one, start) - start, min(last, end) - start) for one, last in snippet.matches if one < end],
        (snippet.best[0] - start, min(snippet.best[1], end) - start),
        start > begin,
        end < stop,
        text.place(snippet.best[0]),
        max(place.branch for place in text.places),
        len(matches),
    )
