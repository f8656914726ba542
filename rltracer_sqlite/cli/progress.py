"""How far a long reading is: a bar on a terminal, and elsewhere a line now and then where these are asked for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from ..amounts import size
from .say import say
from .status import where_there_is_room
from .visible import in_line

if TYPE_CHECKING:
    from ..index.refresh import Progress

SECONDS_BETWEEN_LINES = 30.0
WIDTH, FILLED = 79, 30  # columns of the bar with what stands beside it, and of the bar
LONGEST_LABEL = 30


def refuse_both(quiet: bool, progress: bool) -> None:
    """Raise UsageError where nothing is to be said, and how far it is."""
    if quiet and progress:
        raise click.UsageError("--quiet and --progress ask for different things: give one of them.")


class ProgressBar:
    """A bar on a terminal, elsewhere nothing, or lines if they are asked for: `with ProgressBar(...) as progress:`."""

    def __init__(self, label: str, quiet: bool = False, lines: bool = False) -> None:
        self.label = in_line(label)[:LONGEST_LABEL]
        self.is_shown = not quiet and sys.stderr.isatty()
        self.lines = progress_lines(label) if lines else None

    def __enter__(self) -> Progress | None:
        return self._update if self.is_shown else self.lines

    def _update(self, read: int, total: int) -> None:
        filled = "#" * int(FILLED * (min(read / total, 1.0) if total else 1.0))
        text = f"{self.label} [{filled:<{FILLED}}] {size(read)} of {size(total)}"
        click.echo("\r" + text[:WIDTH].ljust(WIDTH), err=True, nl=False)

    def __exit__(self, *error: object) -> None:
        if self.is_shown:
            click.echo("\r" + " " * WIDTH + "\r", err=True, nl=False)


def progress_lines(label: str, seconds: Callable[[], float] = time.monotonic) -> Progress:
    """Return what says on stderr now and then how many bytes are read."""
    tell = now_and_then(seconds)
    return lambda read, total: tell(f"{label}: {size(read)} of {size(total)} read")


def now_and_then(seconds: Callable[[], float] = time.monotonic) -> Callable[[str], None]:
    """Return what prints a line of a log on stderr, but only every half minute, by a clock that never goes back."""
    said = seconds()

    def tell(text: str) -> None:
        nonlocal said
        if (now := seconds()) - said >= SECONDS_BETWEEN_LINES:
            said = now
            with where_there_is_room():
                say(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {in_line(text)}", err=True)

    return tell
