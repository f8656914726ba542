"""Programs that are sent a signal: none of them, nor what it has started, outlives the test."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any

from tests.faults.runs import REPOSITORY, SECONDS


@contextmanager
def running(arguments: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a program whose output is read, and end it with all that it started: at the end, or after SECONDS.

    Who reads from it or waits for it then goes on, and finds that it was killed.
    """
    with subprocess.Popen(
        arguments, cwd=REPOSITORY, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        **options,
    ) as process:  # fmt: skip
        watchdog = Timer(SECONDS, _kill, [process])
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
