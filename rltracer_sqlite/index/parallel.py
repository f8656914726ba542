"""Scanning on several cores: processes that scan parts and send what they find to the only writer."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from queue import SimpleQueue
from typing import Any

from ..sources.base import Source, SourceError
from ..sources.places import Root
from .parts import PART_BYTES, Failed, Part, scan_part

AHEAD_BYTES = 2 * PART_BYTES  # that a process is given to do while it waits for nobody
MOST_BUFFERED = 32 << 20  # bytes of findings that nobody has asked for yet
WAITING_SECONDS = 1.0  # after which a process that waits for findings looks up
END = b"."  # behind the last batch of a part


class Workers:
    """Processes that scan parts, as `parts.Engine` wants them: `with Workers(...) as engine:`.

    `parts` are handed out in their order. A process that ends while it scans a part fails that part, and another
    one takes its place. `method` is how processes are started, as multiprocessing calls it.
    """

    def __init__(
        self, source: Source, root: Root, parts: Iterator[Part], count: int, method: str | None = None
    ) -> None:
        self.source, self.root, self.parts, self.count = source, root, parts, count
        self.context = get_context(method or _start_method())
        self.workers: list[_Worker] = []
        self.returned: deque[Part] = deque()  # given to a process that has ended before it began them
        self.arrived: dict[int, deque[bytes]] = {}  # by the part's number: what was found and not asked for yet
        self.buffered = 0
        self.dropped = -1  # the last part that is not wanted any more

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.end()

    def batches(self, part: Part) -> Iterator[list[Any]]:
        """Yield the findings of a part. Waits for them, and meanwhile takes in what others have found."""
        while (message := self._next_message(part)) != END:
            yield pickle.loads(message)

    def drop(self, part: Part) -> None:
        """Forget a part; with it all before it, since parts are asked for in their order."""
        self.dropped = max(self.dropped, part.number)
        for message in self.arrived.pop(part.number, ()):
            self.buffered -= len(message)

    def _next_message(self, part: Part) -> bytes:
        while not (queue := self.arrived.setdefault(part.number, deque())):
            self._hand_out()
            self._take_in(part)
        message = queue.popleft()
        self.buffered -= len(message)
        return message

    def _hand_out(self) -> None:
        while (worker := self._free()) is not None and (part := self._next_part()) is not None:
            worker.give(part)

    def _next_part(self) -> Part | None:
        while (part := self.returned.popleft() if self.returned else next(self.parts, None)) is not None:
            if part.number > self.dropped:
                return part
        return None

    def _free(self) -> _Worker | None:
        """Return the process with the least to do; None where all have enough, or too much waits to be written."""
        if self.buffered >= MOST_BUFFERED and any(worker.parts for worker in self.workers):
            return None
        self.workers = [worker for worker in self.workers if worker.parts or worker.process.is_alive()]
        if len(self.workers) < self.count and all(worker.parts for worker in self.workers):
            self.workers.append(_Worker(self.context, self.source, self.root, self.workers))
        least = min(self.workers, key=_Worker.bytes_to_do)
        return least if not least.parts or least.bytes_to_do() < AHEAD_BYTES else None

    def _take_in(self, wanted: Part) -> None:
        busy = [worker for worker in self.workers if worker.parts]
        if self.buffered >= MOST_BUFFERED:
            # Whoever is not listened to stands still: memory stays bounded.
            busy = [worker for worker in busy if wanted in worker.parts] or busy
        # Not for ever: a signal that comes right before the system waits is noticed only after that.
        for connection in wait([worker.connection for worker in busy], WAITING_SECONDS):
            self._receive(next(worker for worker in busy if worker.connection is connection))

    def _receive(self, worker: _Worker) -> None:
        part = worker.parts[0]
        try:
            message = worker.connection.recv_bytes()
        except (EOFError, OSError):
            self._lose(worker)
            return
        if message == END:
            worker.parts.popleft()
        self._arrive(part, message)

    def _arrive(self, part: Part, message: bytes) -> None:
        if part.number > self.dropped:
            self.arrived.setdefault(part.number, deque()).append(message)
            self.buffered += len(message)

    def _lose(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        self.returned.extendleft(reversed(list(worker.parts)[1:]))
        error = SourceError(f"the process that read it {worker.end()}; index again to read it")
        for message in (pickle.dumps([Failed(error)]), END):
            self._arrive(worker.parts[0], message)


class _Worker:
    """One process, and the parts that it has been given."""

    def __init__(self, context: BaseContext, source: Source, root: Root, others: list[_Worker]) -> None:
        self.connection, theirs = context.Pipe()
        self.parts: deque[Part] = deque()
        # A forked process has the others' connections too; while it holds them they do not end.
        inherited = [self.connection, *(other.connection for other in others)] if _forks(context) else []
        self.process = context.Process(  # type: ignore[attr-defined]
            target=_work, args=(theirs, source, root, inherited), daemon=True
        )
        with _interrupts_held():
            self.process.start()
            # What a signal raises while an object is finalised is lost, so that this one is while they are held.
            theirs.close()
            del theirs

    def give(self, part: Part) -> None:
        self.parts.append(part)
        with suppress(OSError):  # it has ended, which is noticed where it is listened to
            self.connection.send(part)

    def bytes_to_do(self) -> int:
        return sum(part.size for part in self.parts)

    def end(self) -> str:
        """End the process where it has not ended; say how it did."""
        self.connection.close()
        self.process.terminate()
        self.process.join()
        code = self.process.exitcode or 0
        names = {known.value: known.name for known in signal.Signals}
        return f"was killed by {names.get(-code, f'signal {-code}')}" if code < 0 else f"ended with exit code {code}"


def _work(connection: Connection, source: Source, root: Root, inherited: list[Connection]) -> None:
    """Scan the parts that come in until there are none: what a process does."""
    _take_termination()
    for other in inherited:
        other.close()
    given: SimpleQueue[Part | None] = SimpleQueue()
    threading.Thread(target=_take_parts, args=(connection, given), daemon=True).start()
    with suppress(BrokenPipeError, ConnectionResetError):  # whoever wanted the findings has gone
        while (part := given.get()) is not None:
            for batch in scan_part(source, root, part):
                connection.send_bytes(pickle.dumps(batch, pickle.HIGHEST_PROTOCOL))
            connection.send_bytes(END)


def _take_parts(connection: Connection, given: SimpleQueue[Part | None]) -> None:
    """Take parts in as they come, None behind the last.

    This does not wait until findings are sent: nobody takes these in while parts are given, so that both processes
    would wait for one another.
    """
    try:
        with suppress(EOFError, OSError):
            while True:
                given.put(connection.recv())
    finally:
        given.put(None)


def _start_method() -> str:
    """Return "fork", which is by far the cheapest, where it is safe: another thread might hold a lock."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return "spawn"
    try:
        return "fork" if len(os.listdir("/proc/self/task")) == 1 else "spawn"
    except OSError:  # no /proc
        return "spawn"


def _forks(context: BaseContext) -> bool:
    return context.get_start_method() == "fork"


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep signals from the processes that are started meanwhile: the one that started them ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _take_termination() -> None:
    """End on SIGTERM, whatever the process that started this one does then; it was held back until here."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
