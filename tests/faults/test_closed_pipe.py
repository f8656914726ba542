"""Commands whose reader leaves, as `head` does: they end quietly, with an exit code of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.runs import COMMANDS, REPOSITORY
from tests.indexing import value

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a closed pipe is told otherwise there")


def unread(command: str, *arguments: object, stderr_too: bool = False) -> tuple[int, bytes | None]:
    """Run a command whose output nobody reads; return its exit code and what it said on stderr."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS[command], *map(str, arguments)], check=False, cwd=REPOSITORY,
        stdout=writing, stderr=writing if stderr_too else subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    os.close(writing)
    return done.returncode, done.stderr


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(
    "arguments",
    [["inspect", "{}"], ["inspect", "{}", "--json"], ["plot", "{}", "pass-rate"], ["runs", "{}"], ["--help"]],
    ids=" ".join,
)
def test_a_command_that_nobody_reads_ends_quietly(arguments: list[str], whole: Path) -> None:
    assert unread("rltracer", *(one.format(whole) for one in arguments)) == (141, b"")


def test_an_error_that_nobody_reads_ends_quietly_too(tmp_path: Path) -> None:
    assert unread("rltracer", "inspect", tmp_path / "nothing", stderr_too=True) == (141, None)


def test_an_indexing_that_nobody_reads_has_written_its_index(run: Path, tmp_path: Path) -> None:
    assert unread("index", tmp_path / "x.sqlite", run) == (141, b"")
    assert [path.name for path in tmp_path.iterdir()] == ["x.sqlite"]
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories") == 120
