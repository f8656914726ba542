"""Being asked to stop by a signal: what is under way is ended at a place where nothing is lost."""

from __future__ import annotations

import signal
import time
from typing import Any

NAP_SECONDS = 0.1  # how soon a signal is noticed while waiting


class Stopped(Exception):
    """Raised where work can be left: what has been committed stays."""


class Stopping:
    """Whether a signal asked to stop: `with Stopping() as stopping:`. A second one stops at once.

    SIGINT and SIGTERM do, and the end of the terminal, unless that is to be survived (nohup).
    """

    def __init__(self) -> None:
        self.is_asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stopping:
        numbers = [signal.SIGINT, signal.SIGTERM]
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self._before = {number: signal.signal(number, self._ask) for number in numbers}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: object) -> None:
        self.is_asked = True
        self.__exit__()

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds, or until it is time to stop."""
        end = time.monotonic() + seconds
        while not self.is_asked and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, NAP_SECONDS))

    def check(self) -> None:
        """Raise Stopped when it is time to stop."""
        if self.is_asked:
            raise Stopped
