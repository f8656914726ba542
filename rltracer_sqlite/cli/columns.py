"""Texts in the columns of a terminal: how wide they are, cut to fit, and broken into lines."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Iterator

from .visible import printable

PIPED = 80  # columns where there is no terminal
NARROWEST = 40  # a table takes that much in any case
LARGEST_DECIMAL = 1e9
LARGEST_WHOLE = 1e15  # below it a fraction has digits behind its point
SHORTEST_PLACE = 10  # columns of a place that are shown in any case


def screen_width() -> int:
    """Return the columns of the terminal, or 80 where the output goes elsewhere."""
    return max(shutil.get_terminal_size((PIPED, 24)).columns, NARROWEST)


def width_of(text: str) -> int:
    """Return how many columns a text takes: East Asian wide characters take two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(text: str, width: int) -> str:
    """Return a text in one line of at most `width` columns, made printable; "…" stands for what is left out."""
    line = printable(text).replace("\n", " ").replace("\t", " ")
    return line if width_of(line) <= width else _beginning(line, width - 1) + "…"


def ending(text: str, width: int) -> str:
    """Return the last at most `width` columns of a printable line; "…" stands for what is left out."""
    if width_of(text) <= width:
        return text
    return "…" + _beginning(text[::-1], width - 1)[::-1] if width > 1 else ""


def path_ending(path: str, width: int) -> str:
    """Return a printable path in at most `width` columns: without its first folders, "…/step_3/traces.jsonl".

    Of a name that is too long by itself it is the end.
    """
    names = path.split("/")
    shorter = ("/".join(["…", *names[start:]]) for start in range(1, len(names)) if names[start])
    fitting = (shown for shown in (path, *shorter) if width_of(shown) <= width)
    return next(fitting, None) or ending(path.rstrip("/"), width)


def caption(place: str, said: str, width: int) -> Iterator[str]:
    """Yield a place and what is said of it, without the beginning of the place where both do not fit a line.

    What is said is never cut: it goes on in further lines where it is too long itself.
    """
    place, said = (printable(text).replace("\n", " ").replace("\t", " ") for text in (place, said))
    return wrapped(path_ending(place, max(width - width_of(said), SHORTEST_PLACE)) + said, width)


def cell(text: str | None, width: int) -> str:
    """Return a text that fills a column of a table; a dash where there is none."""
    shown = cut(text, width) if text else "–"
    return shown + " " * (width - width_of(shown))


def decimal(number: float | None) -> str:
    """Return a number with three decimals, four digits of one that is beyond columns, or a dash where there is none."""
    return "–" if number is None else f"{number:.3f}" if abs(number) < LARGEST_DECIMAL else f"{number:.4g}"


def figure(number: float, digits: int = 4) -> str:
    """Return a number of one trajectory: as it is where it is whole, four significant digits of a fraction."""
    is_whole = isinstance(number, int) or (number.is_integer() and abs(number) < LARGEST_WHOLE)
    return str(int(number)) if is_whole else f"{number:.{digits}g}"


def step_words(step: int | None) -> str:
    """Return a step as the lists say it."""
    return "no step" if step is None else f"step {step}"


def identity(number: int | None) -> str:
    """Return the number of a row, or a dash where there is none."""
    return "–" if number is None else str(number)


def wrapped(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a printable text, those that are wider than `width` broken, at a space where there is one."""
    for line in text.split("\n"):
        rest = line.expandtabs(8)
        while len(part := _beginning(rest, width)) < len(rest):
            # No break inside the indentation: it would give an empty line.
            space = part.rfind(" ")
            if rest[len(part)] != " " and space > len(part) - len(part.lstrip()):
                part = part[:space]
            yield part
            rest = rest[len(part) :].removeprefix(" ")
        yield rest


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _beginning(text: str, width: int) -> str:
    taken = 0
    for place, character in enumerate(text):
        taken += _columns(character)
        if taken > width:
            return text[: max(place, 1)]
    return text
