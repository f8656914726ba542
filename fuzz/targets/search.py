"""What a person types into the search box."""

from __future__ import annotations

import sqlite3
from functools import cache

from rltracer_sqlite.search import QueryError, best_snippet, find_matches, full_text_query
from rltracer_sqlite.search.characters import TOKENIZER

from ..target import Target

TEXTS = [
    "The tests are failing: exit code 1.",
    "Café NEAR \x02the\x03 \0 end",
    "",
    'a "b" (c)',
    "数一数GPU显存。ｶﾞ กิน ＡＢ か\u3099 \x1fる",
]


@cache
def table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute(f'create virtual table t using fts5(body, tokenize="{TOKENIZER}")')
    connection.executemany("insert into t (body) values (?)", [(text,) for text in TEXTS])
    return connection


def check(data: bytes) -> None:
    """A text is refused in a sentence or is a query; its matches and its snippet lie within the texts."""
    typed = data.decode("utf-8", "surrogateescape")
    try:
        query = full_text_query(typed)
    except QueryError as error:
        assert str(error).endswith(".")
        return
    table().execute("select rowid from t where t match ?", (query,)).fetchall()
    for text, matches in zip(TEXTS, find_matches(TEXTS, query), strict=True):
        assert all(0 <= start < end <= len(text) for start, end in matches)
        snippet = best_snippet(text, matches, query, 20)
        assert 0 <= snippet.start <= snippet.end <= len(text)
        assert all(snippet.start <= start and end <= snippet.end for start, end in snippet.matches)


def seeds() -> list[bytes]:
    typed = [
        "exit code",
        '"exit code"',
        "fail*",
        "a AND b OR c NOT d",
        "(a OR b) c",
        "NEAR(a b, 5)",
        "“curly”",
        "foo-bar C++ a:b ^c",
        '数一* "显存。か\u3099" OR กิ',
    ]
    return [text.encode() for text in typed] + [b"\xed\xa0\x80", b"a\0b", b"x" * 1001]


SIGNS = ('"', "(", ")", "*", ", 5)", "^", ":", "-", "{", "}", "“", "”", "\0", " ")
WORDS = (*SIGNS, "AND", "OR", "NOT", "NEAR(", "数", "ﾞ", "ิ", "Ａ")
TARGETS = {"search": Target("search", "questions to full-text search", check, seeds, "text", WORDS)}
