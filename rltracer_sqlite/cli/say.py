"""Sentences and facts for people: broken between words at the width of the terminal, and in a pipe a line each."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from typing import TextIO

import click

from .columns import screen_width, width_of
from .visible import printable

COMMANDS = ("  datasette ", "  rltracer ")  # lines that are copied whole
WORD = re.compile(r"\S+(?: >= \S+)*")  # a rule is one word
HANGING = 2


def say(text: str, err: bool = False, hanging: int = HANGING) -> None:
    """Print a text, made printable; the lines that go on a line of it are indented by `hanging` more columns."""
    click.echo(fitted(text, sys.stderr if err else sys.stdout, hanging), err=err)


def fitted(text: str, stream: TextIO, hanging: int = HANGING) -> str:
    """Return a printable text whose lines fit into the terminal behind a stream; as it is where there is none."""
    lines = printable(text).split("\n")
    if not stream.isatty():
        return "\n".join(lines)
    width = screen_width()
    return "\n".join(
        part for line in lines for part in ([line] if line.startswith(COMMANDS) else _folded(line, width, hanging))
    )


def show_error(error: click.ClickException) -> None:
    """Print what is wrong with the arguments of a command as click does, in lines that fit."""
    shown = io.StringIO()
    error.show(file=shown)
    click.echo(fitted(shown.getvalue(), sys.stderr), err=True, nl=False)


def _folded(line: str, width: int, hanging: int) -> Iterator[str]:
    """Yield a line in parts of at most `width` columns; a word that is wider, such as a path, is never cut."""
    if width_of(line) <= width:
        yield line
        return
    indent = len(line) - len(line.lstrip())
    part, reached = "", 0
    for word in WORD.finditer(line):
        longer = part + line[reached : word.end()]
        if part and width_of(longer) > width:
            yield part
            longer = " " * (indent + hanging) + word[0]
        part, reached = longer, word.end()
    yield part
