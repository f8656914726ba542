"""Commands whose output nobody reads any more, as after `| head`: they end quietly, by an exit code of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CLOSED_PIPE = 141  # as shells have it of a program that SIGPIPE ends: 128 + 13


@contextmanager
def closed_pipes() -> Iterator[None]:
    """Let a command end with `CLOSED_PIPE` where the reader of its output has left."""
    streams = sys.stdout, sys.stderr
    try:
        yield
    except (BrokenPipeError, SystemExit) as error:
        # click catches most of them itself: it exits with 1, and others stand in the place of the streams then.
        if isinstance(error, SystemExit) and (sys.stdout, sys.stderr) == streams:
            raise
        _discard_the_rest()
        sys.exit(CLOSED_PIPE)


def _discard_the_rest() -> None:
    """Send what the streams still hold nowhere, lest the interpreter complain of it when it flushes them."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # one that is no file, or is closed
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
