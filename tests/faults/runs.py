"""A small run for the tests of faults, what an index of it holds, and commands in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.indexing import rows
from tests.layouts import append, message, trace

REPOSITORY = Path(__file__).parents[2]
STEPS, RECORDS = (1, 2, 3), 40
SECONDS = 60  # within which any command of these tests has ended, however busy the machine is
EVERYTHING = """
    select t.uid, s.path, t.byte_offset, t.byte_length, t.step, t.reward, t.success, g.trajectories, g.pass_rate, t.gone
    from trajectories t join shards s on s.id = shard_id join prompt_groups g on g.id = t.prompt_group_id
    order by t.uid
"""
SUMMARY = "select step, split, trajectories, scored, successes from steps order by step"
COMMANDS = {
    "index": "from rltracer_sqlite.cli.index import main; main()",
    "rltracer": "from rltracer_sqlite.cli import main; main()",
}


def record(step: int, number: int, answer: str = "42", **extra: Any) -> dict[str, Any]:
    """Return a trace of some kilobytes; every second one is a success."""
    said = [message("user", f"question {number % 5}"), message("assistant", answer + " because" * 200)]
    return trace(said, id=f"{step}-{number}", rewards={"r": float(number % 2)}, **extra)


def file_of(root: Path, step: int) -> Path:
    return root / f"rollouts/step_{step}/train/all/traces.jsonl"


def write_run(root: Path) -> Path:
    """Write a run of three steps with forty trajectories each, and return it."""
    for step in STEPS:
        append(file_of(root, step), *(record(step, number) for number in range(RECORDS)))
    return root


def content(database: Path) -> list[Any]:
    """Return what an index holds, without ids and times, after checking that it is consistent."""
    assert rows(database, "pragma integrity_check") == [("ok",)]
    assert rows(database, "pragma foreign_key_check") == []
    return [*rows(database, EVERYTHING), *rows(database, SUMMARY)]


def called(command: str, *arguments: object, before: Callable[[], None] | None = None, **environment: str) -> Any:
    """Run a command in a process of its own, `before` called in it first, and return what it left."""
    return subprocess.run(
        [sys.executable, "-c", COMMANDS[command], *map(str, arguments)],
        capture_output=True, text=True, check=False, preexec_fn=before, cwd=REPOSITORY, timeout=SECONDS,
        # Where files may not grow, Python would leave cut-off bytecode behind for everybody after it.
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1", **environment},
    )  # fmt: skip


def sentence(done: Any, code: int = 1) -> str:
    """Return the one sentence on stderr of a command that failed as it should."""
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("Error: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return str(done.stderr[7:-1])


def names(folder: Path) -> list[str]:
    """Return the names of everything in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def file_limit(size: int) -> Callable[[], None]:
    """Return what makes every write beyond `size` bytes of a file fail, as on a disk that is full."""

    def limit() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def reads_everything(folder: Path) -> bool:
    """Say whether this user may read a file that nobody may read, as root may."""
    file = folder / "closed"
    file.touch(0)
    file.chmod(0)
    try:
        file.read_bytes()
    except PermissionError:
        return False
    finally:
        file.unlink()
    return True


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path | None]:
    """Give a small file system in memory at `folder`, or None where this user may not mount one."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        made = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        made = False
    try:
        yield folder if made else None
    finally:
        if made:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def remounted_read_only(folder: Path) -> None:
    """Make a file system that `mounted` gave read-only."""
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
