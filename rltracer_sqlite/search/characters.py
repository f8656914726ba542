"""Scripts that are written without spaces: each character of them is a word of its own, so that any part is found.

SQLite's tokenizer takes a whole run of Chinese, Japanese or Thai for one word. So texts are given to it with their
characters set apart, and what is asked is set apart alike: `うるう年` is the phrase `う る う 年`. Korean has spaces,
but its words carry their particles with them, so that it is no exception.
"""

from __future__ import annotations

import re
from functools import cache
from unicodedata import normalize

# Whoever changes which words a text is made of counts on: full text with another number is made anew.
VERSION = 2
SCRIPTS = (
    "\u0e01-\u0e5b"  # Thai
    "\u0e81-\u0edf"  # Lao
    "\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17e9"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"  # Hangul
    "\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001b000-\U0001b16f"  # Hiragana and Katakana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3005-\u3007\u3021-\u3029\u3031-\u303c\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003fffd"  # and the rest of it
)
WIDE = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"  # digits and letters as wide as Han
# Vowels, tones and such of these scripts: characters of a text like its letters, though not to SQLite.
MARKS = (
    "\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1064\u1067-\u106d\u1071-\u1074"
    "\u1082-\u108f\u109a-\u109d\u17b4-\u17d3\u17dd\ua9e5\uaa7b-\uaa7d\u3099\u309a"
)
# What is compared as another character: forms that only look different, and characters that are written in pieces.
FORMS = (
    f"[{WIDE}\u2f00-\u2fd5\uf900-\ufaff\U0002f800-\U0002fa1d]+|[\uff66-\uff9d][\uff9e\uff9f]?"
    "|[\u3041-\u30ff][\u3099\u309a]|[\u1100-\u1112][\u1161-\u1175][\u11a8-\u11c2]?"
)
PIECES = f"[{MARKS}\uff9e\uff9f\u1161-\u11ff]*"  # that belong to the character before them

JOINED = 1_000  # characters at once, each of which takes some eighty bytes meanwhile


def apart(text: str, separator: str = " ") -> str:
    """Return a text with the characters of these scripts set apart, each separator being one character more.

    All other characters keep their number: a form that is compared as fewer is filled up with spaces.
    """
    if text.isascii():
        return text
    runs, forms = _patterns()
    # Most characters stand in a run, and joining it takes a tenth of the time of replacing each of them.
    return runs.sub(lambda run: f"{separator}{separator.join(run[0])}{separator}", forms.sub(_plain, text))


def holds_some(utf8: bytes) -> bool:
    """Say whether a text may have something to set apart. Takes a tenth of the time of looking at each character.

    A text in which nothing but radicals is Han has nothing: they begin as quotation marks and dashes do.
    """
    return any(pattern.search(utf8) for lead, pattern in _leads() if lead in utf8)


def _plain(form: re.Match[str]) -> str:
    return normalize("NFKC", form[0]).ljust(len(form[0]))


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(f"[{SCRIPTS}]{{1,{JOINED}}}"), re.compile(FORMS)


@cache
def _leads() -> list[tuple[bytes, re.Pattern[bytes]]]:
    """Return the bytes that these characters begin with in UTF-8: each first one, and what finds it with a second."""
    seconds: dict[int, set[int]] = {}
    for first, last in re.findall("(.)-(.)", SCRIPTS + WIDE):
        # The 64 characters from a multiple of 64 on differ in their last byte alone, which is the third or the fourth.
        for number in range(ord(first) & ~63, ord(last) + 1, 64):
            lead, second, *_ = chr(number).encode("utf-8", "surrogatepass")
            seconds.setdefault(lead, set()).add(second)
    return [
        (bytes([lead]), re.compile(b"%c[%s]" % (lead, re.escape(bytes(sorted(found))))))
        for lead, found in sorted(seconds.items())
    ]


def _listed(ranges: str) -> str:
    """Return all characters of the ranges of a pattern."""
    return "".join(
        chr(number)
        for first, last in re.findall("(.)(?:-(.))?", ranges)
        for number in range(ord(first), ord(last or first) + 1)
    )


TOKENIZER = f"porter unicode61 tokenchars '{_listed(MARKS)}'"
