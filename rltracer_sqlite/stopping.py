"""Being asked to stop by a signal: what is under way is ended at a place where nothing is lost."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

NAP_SECONDS = 0.1  # how soon a signal is noticed while waiting


class Stopped(Exception):
    """Raised where work can be left: what has been committed stays."""


class Stopping:
    """Whether a signal asked to stop: `with Stopping() as stopping:`. A second one stops at once.

    SIGINT and SIGTERM do, and the end of the terminal, unless that is to be survived (nohup). `then` is called when
    one comes, from its handler, also while the main thread waits for a process.
    """

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.is_asked = False
        self._then = then
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stopping:
        self._before = {number: signal.signal(number, self._ask) for number in [signal.SIGINT, *_others()]}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: object) -> None:
        self.is_asked = True
        self.__exit__()
        self._then()

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds, or until it is time to stop."""
        end = time.monotonic() + seconds
        while not self.is_asked and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, NAP_SECONDS))

    def check(self) -> None:
        """Raise Stopped when it is time to stop."""
        if self.is_asked:
            raise Stopped


def one_more_held() -> AbstractContextManager[object]:
    """Let a signal to stop pass without effect while it is said what was left; the next one stops at once."""
    is_main = threading.current_thread() is threading.main_thread()  # no other one may ask for signals
    return Stopping() if is_main else nullcontext()


@contextmanager
def interrupts() -> Iterator[Callable[[], int]]:
    """Let SIGTERM and the end of the terminal raise KeyboardInterrupt as Ctrl-C does.

    Gives what returns the exit code of a command that was stopped so, as shells have it: 130 after Ctrl-C.
    """
    came: list[int] = [signal.SIGINT]

    def interrupt(number: int, frame: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()  # no other one may ask for signals
    numbers = [number for number in _others() if signal.getsignal(number) == signal.SIG_DFL] if is_main else []
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield lambda: 128 + came[-1]
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _others() -> list[int]:
    """Return the signals, beside Ctrl-C, that ask to stop."""
    hangup = [signal.SIGHUP] if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN else []
    return [signal.SIGTERM, *hangup]
