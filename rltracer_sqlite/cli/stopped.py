"""Commands that are stopped by Ctrl-C or a signal: they say so, and what they leave."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

# What is left of a command that is stopped by Ctrl-C or a signal, where more can be said than that it was.
LEFT = {
    "export": "The output was not written.",
    "fts": "The full text keeps what was written so far; run the same command again to go on.",
    "retemplate": "The output was not written.",
    "runs": "A run is changed as a whole or not at all: rltracer runs shows how it is.",
}


class Interrupted(click.ClickException):
    """A command was stopped by Ctrl-C or a signal; the message says what is left of it, in whole sentences."""


def is_interrupt(error: BaseException) -> bool:
    """Say whether an error is a Ctrl-C or a signal to stop, which SQLite tells in its own way while it is at work."""
    by_sqlite = type(error).__name__ == "OperationalError" and str(error) == "interrupted"
    return by_sqlite or isinstance(error, (KeyboardInterrupt, click.Abort, Interrupted))


@contextmanager
def telling(left: Callable[[], str]) -> Iterator[None]:
    """Let an interrupt say what it leaves, asked of `left`: `with telling(lambda: "Nothing was written."):`.

    One more signal does not keep it from saying so, the next one does.
    """
    from ..stopping import one_more_held

    try:
        yield
    except BaseException as error:
        if isinstance(error, Interrupted) or not is_interrupt(error):
            raise
        with one_more_held():
            raise Interrupted(_told(error) or left()) from error


def _told(error: BaseException | None) -> str:
    """Return what was to be said when another interrupt came, or ""."""
    while error is not None:
        if isinstance(error, Interrupted) and error.message:
            return error.message
        error = error.__context__
    return ""


def say_stopped(error: BaseException) -> None:
    """Print that a command was stopped, and what it leaves where that is known."""
    from ..stopping import one_more_held
    from .say import say

    with one_more_held():
        if sys.stderr.isatty():
            click.echo(err=True)  # the terminal shows ^C where the cursor was
        say(f"Stopped. {_told(error)}".strip(), err=True)
