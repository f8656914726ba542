"""Where a query matches within texts, found by SQLite's own full-text search so that both mean the same."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from .characters import PIECES, TOKENIZER, apart

# Control characters mark the matches, and set characters apart; where a text has them itself, something of the same
# length takes their place.
OPEN, CLOSE, APART = "\x02", "\x03", "\x1f"
SAFE = str.maketrans(dict.fromkeys((OPEN, CLOSE, APART, "\0"), " "))
# FTS5 copies all of a text for each mark that it makes in it: a long text is looked at in stretches, which overlap so
# that what matches lies in one of them as a whole.
STRETCH, OVERLAP = 16_384, 2_048  # characters
# What a question as `full_text_query` writes it looks for: phrases, each alone or NEAR others.
PHRASE = r'"(?:[^"]|"")*"\*?'
LOOKED_FOR = re.compile(rf"NEAR\((?:{PHRASE}|[^\"()])*\)|{PHRASE}")


def find_matches(texts: Sequence[str], query: str) -> list[list[tuple[int, int]]]:
    """Return for each text the (start, end) of what a query of `full_text_query` matches in it; [] where it does not.

    Costs about as much time as indexing the texts, some 20 ms for a million characters, and ten times that for as many
    that are words of their own, or where every second word is one that is looked for.
    """
    found: list[list[tuple[int, int]]] = [[] for _ in texts]
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, enumerate(texts))
        marked = connection.execute(
            """
            select rowid, iif(length(body) > ?, null, highlight(found, 0, ?, ?)) from found where found match ?
            """,
            (STRETCH + OVERLAP, OPEN, CLOSE, query),
        ).fetchall()
        for number, text in marked:
            found[number] = _marks(text, texts[number]) if text else _matches_of_long(connection, texts[number], query)
    return found


def fill(connection: sqlite3.Connection, texts: Iterable[tuple[int, str]]) -> None:
    """Make the table `found` of texts by their numbers, as the full text of an index has them."""
    connection.execute("drop table if exists found")
    connection.execute(f'create virtual table found using fts5(body, tokenize="{TOKENIZER}")')
    rows = ((number, apart(text.translate(SAFE), APART)) for number, text in texts)
    connection.executemany("insert into found (rowid, body) values (?, ?)", rows)


def _matches_of_long(connection: sqlite3.Connection, text: str, query: str) -> list[tuple[int, int]]:
    """Return what is looked for in a text that matches as a whole, as no stretch of it may."""
    stretches = dict(_stretches(text))
    fill(connection, stretches.items())
    marked = connection.execute(
        "select rowid, highlight(found, 0, ?, ?) from found where found match ?",
        (OPEN, CLOSE, " OR ".join(LOOKED_FOR.findall(query))),
    )
    matches = (
        (start + first, start + last) for start, marks in marked for first, last in _marks(marks, stretches[start])
    )
    merged: list[tuple[int, int]] = []
    for first, last in sorted(matches):
        if merged and first < merged[-1][1]:
            first, last = merged[-1][0], max(merged.pop()[1], last)
        merged.append((first, last))
    return merged


def _stretches(text: str) -> Iterator[tuple[int, str]]:
    """Yield overlapping stretches of a text with their places; none begins or ends within a word, if it can be."""
    start = 0
    while start < len(text):
        following = between_words(text, start + STRETCH, 1)
        yield start, text[start : between_words(text, following + OVERLAP, 1)]
        start = following


def _marks(marked: str, text: str) -> list[tuple[int, int]]:
    """Return the (start, end) in a text of what is marked in it once its characters are set apart."""
    pieces = re.compile(PIECES)
    marks, start, place, last = [], 0, 0, 0
    for match in re.finditer(f"[{OPEN}{CLOSE}]", marked):
        place += match.start() - last - marked.count(APART, last, match.start())
        last = match.end()
        if match[0] == OPEN:
            start = place
        elif (found := pieces.match(text, place)) is not None:
            marks.append((start, found.end()))
    return marks


def between_words(text: str, place: int, direction: int) -> int:
    """Return the nearest place outside a word in a direction, or `place` where there is none near."""
    for distance in range(40):
        here = place + direction * distance
        if here <= 0 or here >= len(text):
            return max(0, min(here, len(text)))
        if text[here - 1].isspace() or text[here].isspace():
            return here
    return place
