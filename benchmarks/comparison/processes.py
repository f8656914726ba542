"""Running one program as a whole process, with its time, processor time and peak memory from the kernel."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Command:
    """A program and its arguments; `answer` is run afterwards, unmeasured, where the program prints no answer."""

    arguments: Sequence[str | Path]
    answer: Sequence[str | Path] | None = None
    before: Callable[[], object] | None = None  # run before each measurement, unmeasured


@dataclass(frozen=True)
class Measured:
    """One finished process."""

    wall: float  # seconds from start to end
    cpu: float  # seconds of user and system time
    peak: float  # MiB of resident memory
    output: dict[str, Any]

    @property
    def inside(self) -> list[float]:
        """The seconds that the program measured itself, without its start."""
        return self.output.get("seconds", [])


class ProgramFailed(RuntimeError):
    """A measured program that ended with an error; the message holds what it printed."""


def measure(command: Command, home: Path) -> Measured:
    """Run a command and return what it took. Raises ProgramFailed.

    A program answers with one line of JSON, the last it prints: {"answer": ..., "seconds": [...]}.
    """
    if command.before:
        command.before()
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = _spawn(command.arguments, output.fileno(), home)
        _, status, usage = os.wait4(process, 0)
        wall = time.perf_counter() - began
        text = _text(output)
    if status:
        raise ProgramFailed(f"{' '.join(map(str, command.arguments))} failed:\n{text}")
    answer = _last_json(text)
    if command.answer:
        answer = {**answer, **measure(Command(command.answer), home).output}
    # The kernel counts in KiB, and on macOS in bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Measured(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit, answer)


def _spawn(arguments: Sequence[str | Path], output: int, home: Path) -> int:
    # Settings of the user's shell must not reach the programs; nor may theirs reach the user's home.
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    environment = {**kept, "HOME": str(home), "RLTRACER_HOME": str(home)}
    words = [str(argument) for argument in arguments]
    actions = [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
    return os.posix_spawnp(words[0], words, environment, file_actions=actions)


def _text(output: Any) -> str:
    output.seek(0)
    return str(output.read().decode(errors="replace"))


def _last_json(text: str) -> dict[str, Any]:
    lines = text.strip().splitlines()
    try:
        value = json.loads(lines[-1]) if lines else {}
    except ValueError:
        value = {}
    return value if isinstance(value, dict) else {}
