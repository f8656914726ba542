"""Reading steps of runs in the background: one at a time, each in a process of its own, with its progress."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from rltracer_sqlite.browse.process import safe_environment

WAITING, READING, DONE, FAILED = "waiting", "reading", "done", "failed"
MOST_WAITING = 1_000  # steps that are asked for and not read yet
BROKEN_OFF = "The reading broke off; the log of the server says more."


@dataclass
class Job:
    """One step of a run that is to be read, is being read or has been; `error` is a sentence."""

    root: Path
    path: str  # of the run, relative to the folder of all runs
    step: str
    name: str  # what the run is called in the index
    state: str = WAITING
    read: int = 0  # bytes
    total: int = 0
    error: str | None = None


@dataclass
class Reader:
    """Reads steps into one index. Its thread lives only as long as there is something to read."""

    index: Path
    below: Path
    tokenizer: str | None = None
    fts: bool = False
    jobs: dict[tuple[str, str], Job] = field(default_factory=dict)
    _asked: set[tuple[str, str]] = field(default_factory=set)
    _waiting: deque[Job] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def job(self, path: str, step: str) -> Job | None:
        """Return what is known of a step that was asked for."""
        return self.jobs.get((path, step))

    def was_asked(self, path: str, step: str) -> bool:
        """Say whether this step has been asked for before."""
        return (path, step) in self._asked

    def ask(self, root: Path, path: str, step: str, name: str) -> Job:
        """Have a step read, unless that is about to happen already."""
        with self._lock:
            known = self.jobs.get((path, step))
            if known is not None and known.state in (WAITING, READING):
                return known
            self._asked.add((path, step))
            job = self.jobs[(path, step)] = Job(root, path, step, name)
            if len(self._waiting) >= MOST_WAITING:
                job.state, job.error = FAILED, "Too many steps are waiting to be read already."
                return job
            self._waiting.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="rltracer-reader", daemon=True)
                self._thread.start()
            return job

    def forget(self, path: str, step: str) -> None:
        """Forget a step that has been read, or could not be."""
        with self._lock:
            job = self.jobs.get((path, step))
            if job is not None and job.state in (DONE, FAILED):
                del self.jobs[(path, step)]

    def wait(self, seconds: float) -> bool:
        """Wait until everything that was asked for has been read; say whether it has."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return thread is None or not thread.is_alive()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                job = self._waiting.popleft()
                job.state = READING
            try:
                error = self._read(job)
            except Exception:  # whatever it is, the steps behind this one are still to be read
                error = BROKEN_OFF
            with self._lock:
                job.state, job.error = (FAILED, error) if error else (DONE, None)

    def _read(self, job: Job) -> str | None:
        """Read a step in a process of its own; return what went wrong, or None."""
        command = [sys.executable, "-m", "rltracer_sqlite.browse.read", str(self.index), str(job.root), job.step]
        command += [f"--name={job.name}", f"--below={self.below}"]
        command += [f"--tokenizer={self.tokenizer}"] if self.tokenizer else []
        command += ["--fts"] if self.fts else []
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=safe_environment()
            )
        except OSError as error:
            return f"The reading could not be started: {error.strerror}."
        atexit.register(process.terminate)
        try:
            with process:
                return _followed(process, job)
        finally:
            atexit.unregister(process.terminate)


def _followed(process: subprocess.Popen[str], job: Job) -> str | None:
    outcome: str | None = BROKEN_OFF
    assert process.stdout is not None
    for line in process.stdout:
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if "read" in said:
            job.read, job.total = int(said["read"]), int(said["total"])
        elif said.get("done"):
            outcome = None
        elif "error" in said:
            outcome = str(said["error"])
    return outcome
