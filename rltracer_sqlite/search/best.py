"""The stretch of a text that is shown of what a search matches in it: one rule for pages, the terminal and Python.

It is around the place where most of the words stand, closest to each other: where they stand as they were typed, it is
that phrase.
"""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from .snippets import PHRASE, between_words, fill

SNIPPET_CHARACTERS = 320
BEFORE = 4  # the share of a stretch, one in so many, that stands before what is best in it
# Only a beginning such as `a*` has many forms in a text: of those that come behind so many no word is told.
MOST_FORMS = 10_000
BETWEEN_WORDS = re.compile(r"\W*")

Span = tuple[int, int]


@dataclass(frozen=True)
class Snippet:
    """A stretch of a text from `start` to `end`, and the matches in it as (start, end) within the whole text.

    `best` are the (start, end) of the most words that stand closest to each other, None where nothing matches.
    """

    start: int
    end: int
    matches: Sequence[Span]
    best: Span | None = None


class _Closest(NamedTuple):
    """Matches that stand together: the numbers of the first and the last, and how well they stand for a text."""

    first: int
    last: int
    words: int  # that are looked for, and among them
    is_as_typed: bool
    between: int  # characters that stand between them


def best_snippet(
    text: str,
    matches: Sequence[Span],
    query: str,
    characters: int = SNIPPET_CHARACTERS,
    starts: Sequence[int] = (0,),
) -> Snippet:
    """Return the stretch of about `characters` around the best of the matches of a query in a text.

    That is the shortest with the most of the words, a phrase as it was typed before others, and of several that are
    equal the first of those with most matches around. It begins and ends between words, and lies in one of the parts of
    the text, such as messages, that begin at `starts`. Takes a time that grows with the number of the matches.
    """
    if not matches:
        return Snippet(0, between_words(text, min(characters, len(text)), 1), [])
    first, last = _best(text, matches, query, characters, starts)
    best = (matches[first][0], matches[last][1])
    begins, ends = _part(starts, best[0], len(text))
    before = max(characters - (best[1] - best[0]), 0) // BEFORE
    start = max(between_words(text, max(best[0] - before, 0), -1), begins)
    end = min(between_words(text, min(max(start + characters, best[1]), len(text)), 1), max(ends, best[1]))
    return Snippet(start, end, [match for match in matches if start <= match[0] and match[1] <= end], best)


def _best(text: str, matches: Sequence[Span], query: str, characters: int, starts: Sequence[int]) -> tuple[int, int]:
    """Return the numbers of the first and the last of the best matches."""
    best, best_rank = (0, 0), (0, False, 0, 0)
    most = reached = stop = 0
    ahead = characters - characters // BEFORE
    for first, last, words, is_as_typed, between in _closest(text, matches, query, characters, starts):
        if words < most:
            continue
        most = words
        begin = matches[first][0]
        if begin >= stop:
            stop = _part(starts, begin, len(text))[1]
        end, reached = min(begin + ahead, stop), max(reached, last)
        while reached + 1 < len(matches) and matches[reached + 1][1] <= end:
            reached += 1
        rank = (words, is_as_typed, -between, reached - first)
        if rank > best_rank:
            best, best_rank = (first, last), rank
    return best


def _part(starts: Sequence[int], place: int, length: int) -> Span:
    """Return where the part of a text begins and ends that has a place."""
    number = bisect_right(starts, place)
    return starts[number - 1] if number else 0, starts[number] if number < len(starts) else length


def _closest(
    text: str, matches: Sequence[Span], query: str, characters: int, starts: Sequence[int]
) -> Iterator[_Closest]:
    """Yield for each match the closest matches up to it that say as many of the words as any so close to it."""
    said = _words_said(text, matches, query)
    counted = dict.fromkeys(set[int]().union(*set(said)), 0)
    first = typed_from = words = held = before = 0
    begin, stop = _part(starts, 0, len(text))
    for last, (start, end) in enumerate(matches):
        if start >= stop:
            begin, stop = _part(starts, start, len(text))
        if not _follows(said[last - 1], said[last]) or BETWEEN_WORDS.fullmatch(text, before, start) is None:
            typed_from = last
        before = end
        for word in said[last]:
            words += not counted[word]
            counted[word] += 1
        held += end - start
        earliest = max(begin, end - characters)
        while first < last and (matches[first][0] < earliest or all(counted[word] > 1 for word in said[first])):
            for word in said[first]:
                counted[word] -= 1
                words -= not counted[word]
            held -= matches[first][1] - matches[first][0]
            first += 1
        yield _Closest(first, last, words, typed_from <= first, end - matches[first][0] - held)


@lru_cache(1_000)
def _follows(before: frozenset[int], after: frozenset[int]) -> bool:
    """Say whether one of these words was typed right behind one of those."""
    return any(word + 1 in after for word in before)


def _words_said(text: str, matches: Sequence[Span], query: str) -> list[frozenset[int]]:
    """Return of each match which words and phrases of the query it is, by their places in the query."""
    phrases = re.findall(PHRASE, query)
    if len(phrases) < 2:
        return [frozenset((0,))] * len(matches)
    forms = list(dict.fromkeys(text[start:end] for start, end in matches))[:MOST_FORMS]
    words_of: list[set[int]] = [set() for _ in forms]
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, enumerate(forms))
        for word, phrase in enumerate(phrases):
            for (form,) in connection.execute("select rowid from found where found match ?", (phrase,)):
                words_of[form].add(word)
    known = {form: frozenset(words) for form, words in zip(forms, words_of, strict=True)}
    return [known.get(text[start:end], frozenset()) for start, end in matches]
