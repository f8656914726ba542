"""From what a person types to a query of SQLite's full-text search: words, "phrases", prefix*, AND, OR, NOT, NEAR.

Anything that is not one of these operators is quoted, so that foo-bar, C++ or can't are searched for as they stand,
and no character of a question has a meaning that its writer does not know of. What is written without spaces is a
phrase of its characters. The language is FTS5's own, see
https://www.sqlite.org/fts5.html#full_text_query_syntax.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from ..arguments import shown
from .characters import TOKENIZER, apart

LONGEST_QUERY = 1_000  # characters
MOST_WORDS = 64
OPERATORS = {"AND", "OR", "NOT"}
TOKEN = re.compile(r'"((?:[^"]|"")*)"(\*?)|(NEAR)\(|([()])|([^\s()"]+)')
# A phrase ends at a quotation mark that no other one follows: were that open, trying every way would take for ever.
NEAR = re.compile(r"\s*(?P<inner>(?:\"(?:[^\"]|\"\")*\"(?!\")|[^()\"])*)\)")
NEAR_DISTANCE = re.compile(r",\s*(\d{1,4})\s*$")
CURLY = str.maketrans({"“": '"', "”": '"', "„": '"'})

HELP = 'Write words, "a phrase", a beginning* or combine them with AND, OR, NOT and parentheses.'


class QueryError(ValueError):
    """A question that cannot be asked, in one sentence."""


def full_text_query(text: str) -> str:
    """Return the FTS5 query that a person's text means. Raises QueryError, and TypeError for what is no text."""
    if not isinstance(text, str):
        raise TypeError(f"The words to search for are text, and {shown(text)} is none.")
    if not text.strip():
        raise QueryError("There is nothing to search for.")
    if len(text) > LONGEST_QUERY:
        raise QueryError(f"The search has {len(text):,} characters; at most {LONGEST_QUERY:,} are taken.")
    # Half of a surrogate pair, as a shell passes on bytes that are no text, is nothing that SQLite could look for.
    text = text.translate(CURLY).replace("\0", " ").encode("utf-8", "replace").decode()
    pieces = _pieces(text)
    if sum(piece.startswith('"') for piece in pieces) > MOST_WORDS:
        raise QueryError(f"The search has more than {MOST_WORDS} words.")
    query = " ".join(_with_and(pieces))
    _check(query)
    return query


def as_phrase(text: str) -> str | None:
    """Return the search for some words as one phrase; None where it is one word, or says by itself what it means."""
    words = text.split()
    are_plain = not OPERATORS & {*words} and not any(word.endswith("*") for word in words)
    if len(words) < 2 or not are_plain or set(text.translate(CURLY)) & set('"()') or len(text) > LONGEST_QUERY - 2:
        return None
    return f'"{" ".join(words)}"'


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    position = 0
    while match := TOKEN.search(text, position):
        if '"' in text[position : match.start()]:
            break
        position = match.end()
        phrase, star, near, parenthesis, word = match.groups()
        if near:
            rest = NEAR.match(text, position)
            if rest is None:
                raise QueryError("A NEAR( is not closed. " + HELP)
            pieces.append(_near(rest["inner"]))
            position = rest.end()
        elif parenthesis or word in OPERATORS:
            pieces.append(parenthesis or word)
        else:
            pieces.append(_quoted(phrase.replace('""', '"'), star) if word is None else _word(word))
    if '"' in text[position:]:
        raise QueryError("A quotation mark is not closed. " + HELP)
    return pieces


def _with_and(pieces: list[str]) -> list[str]:
    """Return the pieces with an AND beside parentheses, where FTS5 does not take it as read."""
    found: list[str] = []
    for piece in pieces:
        before = found[-1] if found else "("
        starts, ends = piece not in OPERATORS and piece != ")", before not in OPERATORS and before != "("
        if starts and ends and (piece == "(" or before == ")"):
            found.append("AND")
        found.append(piece)
    return found


def _word(word: str) -> str:
    bare = word.rstrip("*")
    return _quoted(bare or word, "*" if bare and bare != word else "")


def _quoted(text: str, star: str) -> str:
    return '"' + apart(text).strip().replace('"', '""') + '"' + star


def _near(inner: str) -> str:
    distance = NEAR_DISTANCE.search(inner)
    words = " ".join(_pieces(inner[: distance.start()] if distance else inner))
    return f"NEAR({words}{', ' + distance[1] if distance else ''})"


def _check(query: str) -> None:
    """Let SQLite itself say whether the query can be asked, of a table without rows."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"create virtual table empty using fts5(body, content='', tokenize=\"{TOKENIZER}\")")
        try:
            connection.execute("select 1 from empty where empty match ?", (query,)).fetchall()
        except sqlite3.Error as error:
            raise QueryError(_sentence(query, str(error))) from None


def _sentence(query: str, error: str) -> str:
    last, first = query.rsplit(" ", 1)[-1], query.split(" ", 1)[0]
    if query.count("(") != query.count(")"):
        return "A parenthesis is not closed, or was not opened. " + HELP
    if last in OPERATORS:
        return f"Something must follow {last}. " + HELP
    if first in OPERATORS:
        return f"Something must stand before {first}. " + HELP
    return f"The search cannot be understood ({error}). " + HELP
