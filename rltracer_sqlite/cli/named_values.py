"""Recorded values by their names in the terminal: those of one object together, so that its path is said once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from .columns import screen_width, width_of, wrapped
from .visible import in_line

INDENT = "  "

Named = list[tuple[str, str]]


def value_lines(values: Iterable[tuple[str, str]], title: str = "") -> Iterator[str]:
    """Yield values that are given by their dotted paths, as lines that fit the screen: first those that stand alone,
    behind the title, then of each object that has several, behind its path.
    """
    objects: dict[str, Named] = {}
    alone: Named = []
    named = [(*name.rpartition(".")[::2], name, value) for name, value in values]
    held = Counter(path for path, *_ in named)
    for path, short, name, value in named:
        if path and held[path] > 1:
            objects.setdefault(path, []).append((short, value))
        else:
            alone.append((name, value))
    if named:
        yield from _packed(title, alone, INDENT)
    for path, of_object in objects.items():
        yield from _packed(f"{INDENT}{in_line(path)}:", of_object, INDENT * 2)


def _packed(line: str, values: Named, indent: str) -> Iterator[str]:
    """Yield values behind what a line begins with and below it; a name stays beside its value where both fit."""
    for place, (name, value) in enumerate(values, start=1):
        told = in_line(f"{name} {value}") + ("," if place < len(values) else "")
        longer = f"{line} {told}" if line else indent + told
        if line and width_of(longer) > screen_width():
            yield from _broken(line, indent)
            longer = indent + told
        line = longer
    if line:
        yield from _broken(line, indent)


def _broken(line: str, indent: str) -> Iterator[str]:
    """Yield a line, in parts where it is too long by itself."""
    if width_of(line) <= screen_width():
        yield line
        return
    first, *rest = wrapped(line, screen_width() - len(indent))
    yield first
    yield from (indent + part for part in rest)
