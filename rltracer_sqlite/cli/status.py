"""What a watch says while it goes on: a line that is written over, and sentences, each said once."""

from __future__ import annotations

import errno
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import click

from .say import say
from .visible import printable

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Status:
    """One line on a terminal that is written over again and again, and sentences that stay; in a pipe only these."""

    def __init__(self, quiet: bool) -> None:
        self.is_shown = not quiet and sys.stderr.isatty()
        self.said = ""
        self.told: set[str] = set()

    def show(self, text: str) -> None:
        """Show a text until the next one."""
        if self.is_shown:
            width = max(shutil.get_terminal_size().columns - 1, 20)
            click.echo("\r" + printable(text)[:width].ljust(width), err=True, nl=False)

    def say(self, text: str) -> None:
        """Print a sentence, unless it is the one that was printed last."""
        if text != self.said and self._print(text):
            self.said = text

    def tell_once(self, sentences: Iterable[str]) -> None:
        """Print each of these sentences the first time only."""
        for sentence in dict.fromkeys(sentences):
            if sentence not in self.told and self._print(sentence):
                self.told.add(sentence)

    def _print(self, text: str) -> bool:
        """Print a sentence; say whether there was room for it."""
        self.clear()
        with where_there_is_room():
            if text:
                say(text, err=True)
            return True
        return False

    def clear(self) -> None:
        """Take the line away."""
        self.show("")
        if self.is_shown:
            click.echo("\r", err=True, nl=False)


@contextmanager
def where_there_is_room() -> Iterator[None]:
    """Let what is said go unsaid where the disk that it is written to is full: what is watched is worth more."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
