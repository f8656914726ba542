"""What a search has found within each record: read on demand, bounded, and marked."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from rltracer_sqlite.adapter import load_trajectory
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import Document, Place, best_snippet, document, find_matches
from rltracer_sqlite.sources.base import SourceError

from . import compat
from .access import PLUGIN
from .addresses import trajectory_url
from .bounds import ask
from .text import visible

LONGEST_RECORD = 8_000_000  # bytes of one record that are read for a snippet
MOST_BYTES = 32_000_000  # of the records of one page
MOST_CHARACTERS = 6_000_000  # of the texts of one page that are looked through
LONGEST_FIND = 80  # characters of a match that the trajectory's own search is given


@dataclass(frozen=True)
class Hit:
    """One result: its address, and where it matches. Without a snippet, `problem` says why there is none."""

    url: str
    snippet: Markup | None = None
    before: bool = False  # there is text before the snippet
    after: bool = False
    place: Place | None = None
    matches: int = 0
    problem: str | None = None


@dataclass
class _Room:
    """How much may still be read for one page."""

    bytes: int = MOST_BYTES
    characters: int = MOST_CHARACTERS
    texts: dict[int, Document] = field(default_factory=dict)  # place in the list -> its text
    problems: dict[int, str] = field(default_factory=dict)


async def read_hits(datasette: Any, database: str, rows: Sequence[Mapping[str, Any]], match: str) -> list[Hit]:
    """Return for each row of `trajectories` what a FTS5 query matches in its record."""
    attached = datasette.databases[database]
    config = compat.plugin_config(datasette, PLUGIN, database)

    def read(connection: sqlite3.Connection) -> list[Hit]:
        roots = Roots.for_database(attached.path, config.get("roots"))
        room = _Room()
        for number, row in enumerate(rows):
            _read_text(connection, roots, number, row, room)
        texts = room.texts
        found = dict(zip(texts, find_matches([one.text for one in texts.values()], match), strict=True))
        return [
            _hit(datasette, database, row, texts.get(number), found.get(number, []), room.problems.get(number))
            for number, row in enumerate(rows)
        ]

    return await ask(datasette, database, read)


def _read_text(connection: sqlite3.Connection, roots: Roots, number: int, row: Mapping[str, Any], room: _Room) -> None:
    if row["byte_length"] > min(LONGEST_RECORD, room.bytes):
        room.problems[number] = "The record is too long to be read for a list; open it to see the matches."
        return
    room.bytes -= row["byte_length"]
    try:
        text = document(load_trajectory(connection, row["id"], roots))
    except (SourceError, OSError, RecursionError):
        room.problems[number] = "The record cannot be read now; this is the beginning of its prompt."
        return
    if len(text.text) > room.characters:
        room.problems[number] = "The text is too long to be looked through for a list; open it to see the matches."
        return
    room.characters -= len(text.text)
    room.texts[number] = text


def _hit(
    datasette: Any,
    database: str,
    row: Mapping[str, Any],
    text: Document | None,
    matches: Sequence[tuple[int, int]],
    problem: str | None,
) -> Hit:
    if text is None or not matches:
        said = problem or "The record no longer says what was found when its text was read."
        return Hit(trajectory_url(datasette, database, row["id"]), problem=said)
    snippet = best_snippet(text.text, matches)
    first = snippet.matches[0]
    where = text.place(first[0])
    # A snippet stays within the message of its first match.
    begin, stop = text.message(first[0])
    start, end = max(snippet.start, begin), min(snippet.end, stop)
    # The page of the trajectory finds text as it stands, so it gets the words of the first match.
    words = " ".join(text.text[first[0] : first[1]].split())[:LONGEST_FIND]
    branches = max(place.branch for place in text.places)
    asked = {
        "find": words,
        "branch": where.branch if where and branches > 1 else None,
        "message": where.message if where else None,
    }
    address = trajectory_url(datasette, database, row["id"], **asked)
    return Hit(
        f"{address}#found-{where.message}" if where else address,
        marked(text.text, start, end, snippet.matches),
        start > begin,
        end < stop,
        where,
        len(matches),
    )


def marked(text: str, start: int, end: int, matches: Sequence[tuple[int, int]]) -> Markup:
    """Return a stretch of a text as HTML with its matches marked; (start, end) of a match are within the whole text."""
    pieces, position = [], start
    for first, last in matches:
        first, last = max(first, position), min(last, end)
        if last > first:
            pieces += [visible(text[position:first]), Markup("<mark>{}</mark>").format(visible(text[first:last]))]
            position = last
    return Markup("").join([*pieces, visible(text[position:end])])
