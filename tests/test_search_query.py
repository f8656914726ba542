"""What a person types becomes a query that SQLite takes, or one sentence; and matches lie where they are."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltracer_sqlite.search import QueryError, as_phrase, find_matches, full_text_query, snippets
from rltracer_sqlite.search.query import LONGEST_QUERY

TYPED = (
    "a", '"a b"', '"a b" OR "b c"', "a c", "b NOT länger", "NEAR(a c, 3)", "NEAR(a b) OR c", "l*", "数一 a", '"b c" a*',
)  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        ("exit code", '"exit" "code"'),
        ('"exit code"', '"exit code"'),
        ("time*", '"time"*'),
        ('"exit co"*', '"exit co"*'),
        ("a AND b OR c NOT d", '"a" AND "b" OR "c" NOT "d"'),
        ("(a OR b) c", '( "a" OR "b" ) AND "c"'),
        ("a (b) (c OR d) OR e", '"a" AND ( "b" ) AND ( "c" OR "d" ) OR "e"'),
        ("and or not", '"and" "or" "not"'),
        ("foo-bar C++ can't a:b ^c {d}", '"foo-bar" "C++" "can\'t" "a:b" "^c" "{d}"'),
        ('say ""', '"say" ""'),
        ("“curly quotes”", '"curly quotes"'),
        ("NEAR(a b, 5)", 'NEAR("a" "b", 5)'),
        ("NEAR(a b) x", 'NEAR("a" "b") "x"'),
        ("*", '"*"'),
        ("body:x", '"body:x"'),
        ("nul\0here", '"nul" "here"'),
    ],
)
def test_a_question_becomes_a_query(typed: str, query: str) -> None:
    assert full_text_query(typed) == query


@pytest.mark.parametrize(
    ("typed", "phrase"),
    [
        ("exit code", '"exit code"'),
        ("  exit\tcode  1 ", '"exit code 1"'),
        ("can't stop", '"can\'t stop"'),
        *((said, None) for said in ("exit", "", '"exit code"', "exit OR code", "exit cod*", "“exit code”")),
        *((said, None) for said in ("(exit code)", "NEAR(exit code, 2)", "x " * (LONGEST_QUERY // 2))),
    ],
)
def test_words_alone_have_a_phrase(typed: str, phrase: str | None) -> None:
    assert as_phrase(typed) == phrase


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "nothing to search"),
        ("   ", "nothing to search"),
        ('"open', "quotation mark is not closed"),
        ('a "', "quotation mark is not closed"),
        ("(a", "parenthesis"),
        ("a)", "parenthesis"),
        ("a AND", "must follow AND"),
        ("NOT a", "must stand before NOT"),
        ("OR", "must follow OR"),
        ("a AND OR b", "cannot be understood"),
        ("NEAR(a b", "NEAR( is not closed"),
        ("x" * (LONGEST_QUERY + 1), "at most 1,000"),
        ("a " * 65, "more than 64 words"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(typed: str, words: str) -> None:
    with pytest.raises(QueryError, match=words.replace("(", r"\(")) as caught:
        full_text_query(typed)
    assert str(caught.value).endswith(".")


PIECES = [*"ab \"()*-:^{}+,.'\0", "AND", " OR ", " NOT ", "NEAR(", ", 5)"]


def asked(typed: str) -> str | None:
    """Return the query for a question, or None where it cannot be asked."""
    try:
        return full_text_query(typed)
    except QueryError:
        return None


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_what_is_asked_can_be_answered(typed: str) -> None:
    query = asked(typed)
    if query is not None:
        connection = sqlite3.connect(":memory:")
        connection.execute("create virtual table t using fts5(body)")
        assert connection.execute("select * from t where t match ?", (query,)).fetchall() == []
        connection.close()


@pytest.mark.parametrize(
    ("text", "typed", "found"),
    [
        ("The tests are failing.", "fail", ["failing"]),
        ("exit code 1, exit code 2", '"exit code"', ["exit code", "exit code"]),
        ("Café au lait", "cafe", ["Café"]),
        ("timeout timed time", "time*", ["timeout", "timed", "time"]),
        ("nothing here", "absent", []),
        ("\x02odd\x03 text \0 and more", "text OR more", ["text", "more"]),
    ],
)
def test_matches_are_where_the_words_are(text: str, typed: str, found: list[str]) -> None:
    [spans] = find_matches([text], full_text_query(typed))
    assert [text[start:end] for start, end in spans] == found


def test_only_texts_that_match_as_a_whole_have_matches() -> None:
    one, other = find_matches(["alpha beta", "alpha"], full_text_query("alpha beta"))
    assert (len(one), other) == (2, [])


@given(
    st.lists(st.sampled_from(["a", "b", "c", "länger", "\n", "x" * 30, "数一数", "NEAR(", '"']), max_size=120),
    st.sampled_from(TYPED),
)
def test_a_long_text_has_the_matches_of_one_that_is_looked_at_as_a_whole(words: list[str], typed: str) -> None:
    text, query = " ".join(words), full_text_query(typed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snippets, "STRETCH", 10_000)
        [whole] = find_matches([text], query)
        patch.setattr(snippets, "STRETCH", 60)
        patch.setattr(snippets, "OVERLAP", 50)
        assert find_matches([text], query) == [whole]


def test_a_long_text_of_one_word_takes_no_more_for_each_of_its_matches() -> None:
    with pytest.MonkeyPatch.context() as patch:
        looked_at: list[int] = []
        marks = snippets._marks
        patch.setattr(snippets, "_marks", lambda marked, text: looked_at.append(len(text)) or marks(marked, text))
        [found] = find_matches(["port " * 40_000], full_text_query("port"))
    assert (len(found), found[0], found[-1]) == (40_000, (0, 4), (199_995, 199_999))
    assert max(looked_at) <= snippets.STRETCH + snippets.OVERLAP + 100
    assert sum(looked_at) < 250_000
