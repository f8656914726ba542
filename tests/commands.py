"""The commands as a person types them, called in this process, and what they have left behind."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

import rltracer_sqlite.cli
import rltracer_sqlite.cli.index


class Done(NamedTuple):
    """What a command has left behind."""

    returncode: int
    stdout: str
    stderr: str


class Terminal(io.StringIO):
    """What a command prints to a person, who sees the environment's COLUMNS of it."""

    def isatty(self) -> bool:
        return True


def called(main: Callable[[], None], *arguments: object, is_terminal: bool = False) -> Done:
    """Call a console script as it is installed; an error that it does not turn into a sentence fails the test."""
    code, stream = 0, Terminal if is_terminal else io.StringIO
    with (
        patch.object(sys, "argv", ["command", *map(str, arguments)]),
        redirect_stdout(stream()) as stdout,
        redirect_stderr(stream()) as stderr,
    ):
        try:
            main()
        except SystemExit as left:
            code = int(left.code or 0)
    return Done(code, stdout.getvalue(), stderr.getvalue())


def indexed(*arguments: object, is_terminal: bool = False) -> Done:
    return called(rltracer_sqlite.cli.index.main, *arguments, is_terminal=is_terminal)


def rltracer(*arguments: object, is_terminal: bool = False) -> Done:
    return called(rltracer_sqlite.cli.main, *arguments, is_terminal=is_terminal)


def inspected(*arguments: object) -> Done:
    return rltracer("inspect", "--run", *arguments)


def sentence_beside(done: Done) -> str:
    """Return what a command says on stderr that failed after it has printed what the index knows all the same.

    It is one sentence, and a command that may help.
    """
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr
    return done.stderr


def sentence_after_funnel(done: Done) -> str:
    """Return the one sentence on stderr of a dry run that was refused after it has said what each filter left."""
    assert done.stdout.split()[:3] == ["left", "dropped", "available"]
    return sentence(Done(done.returncode, "", done.stderr))


def sentence(done: Done, code: int = 1) -> str:
    """Return the one sentence on stderr of a command that failed as it should."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    *usage, said = done.stderr.strip().split("\n")
    assert said.startswith("Error: ")
    assert not usage or code == 2
    return said.removeprefix("Error: ")
