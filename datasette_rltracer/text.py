"""Text from a trajectory on its way to a page: escaped, its invisible characters shown, long ones cut."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass

from markupsafe import Markup, escape

from rltracer_sqlite.unseen import INVISIBLE as INVISIBLE
from rltracer_sqlite.unseen import LONE_RETURN, shown, symbol
from rltracer_sqlite.unseen import plain as plain

RETURN = re.compile("\r")
# The tokens of a JSON text. A string is taken whole, so what looks like a bracket inside one is not one; so is an
# array of numbers, which nobody wants to read one to a line.
TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|\[[^\[\]{}"]*\]|[\[\]{},:]|[^\s\[\]{},:"]+|"')
MOST_GROWTH = 4
TOO_DEEP = "(nested too deeply to show here; the raw record has it)"


def visible(text: object) -> Markup:
    """Return text as HTML in which every invisible character is a marked symbol with its name."""
    return Markup(shown(str(escape("" if text is None else str(text))), LONE_RETURN, _marked))


def exact(text: str) -> Markup:
    """Return text as HTML like `visible`, with the carriage return of a line's end shown as well.

    A browser reads CR LF as LF alone, so without this a recorded text and the text on the page would differ.
    """
    return Markup(shown(str(escape(text)), RETURN, _marked))


def _marked(found: re.Match[str]) -> str:
    character = found[0]
    title = f"U+{ord(character):04X} {unicodedata.name(character, '')}".strip()
    return f'<span class="invisible" title="{title}">{symbol(character)}</span>'


@dataclass(frozen=True)
class Text:
    """A text as far as it is shown; `characters` is its whole length."""

    text: str
    characters: int

    @property
    def is_cut(self) -> bool:
        """Say whether less than the whole text is shown."""
        return len(self.text) < self.characters


def cut(text: str, limit: int) -> Text:
    """Return the first `limit` characters of a text."""
    return Text(text[:limit], len(text))


def first_words(text: str, limit: int = 90) -> str:
    """Return the beginning of a text in one line of at most `limit` characters, with an ellipsis where it was cut.

    It ends with a whole word, unless that is a very long one.
    """
    line = " ".join(text[: 4 * limit].split())
    if len(line) <= limit and len(text) <= 4 * limit:
        return line
    end = line.rfind(" ", limit // 2, limit)
    return (line[:end] if end > 0 else line[: limit - 1]).rstrip() + "…"


def json_text(value: object) -> str:
    """Return a decoded value as JSON text to read."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=repr)
    except (RecursionError, ValueError):
        return TOO_DEEP


def reindented(text: str) -> str:
    """Return a JSON text with new line breaks and nothing else changed: every number and string stays as written.

    Works token by token, so depth costs no recursion. A text that would grow beyond reason is returned as it is.
    """
    pieces: list[str] = []
    depth, previous, left = 0, "", MOST_GROWTH * len(text) + 1000
    for found in TOKEN.finditer(text):
        token = found[0]
        if token in "]}":
            depth = max(depth - 1, 0)
        pieces.append(_before(token, previous, depth) + token)
        left -= len(pieces[-1])
        if left < 0:
            return text
        depth += token in "[{"
        previous = token
    return "".join(pieces)


def _before(token: str, previous: str, depth: int) -> str:
    """Return the white space between two tokens."""
    if not previous or (token in "]}" and previous in "[{"):
        return ""
    if token in "]}" or previous in "[{," or (depth == 0 and previous in "]}"):
        return "\n" + "  " * depth
    return " " if previous == ":" else ""
