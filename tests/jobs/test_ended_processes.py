"""Processes that are killed, fail or are interrupted while they index."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.index import parallel
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from tests.indexing import index, rows, value
from tests.interrupts import TAKE_INTERRUPTS
from tests.layouts import append

from .runs import ONE, records

ps = pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps to list processes")
posix = pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX systems")


@pytest.mark.usefixtures("forked")
@posix
def test_a_killed_process_fails_one_shard_and_the_next_refresh_reads_it(tmp_path: Path) -> None:
    run, whole, database = tmp_path / "run", tmp_path / "whole.sqlite", tmp_path / "x.sqlite"
    for step in range(1, 5):
        append(run / ONE.replace("step_1", f"step_{step}"), *records(60, f"s{step}-"))
    append(run / ONE.replace("step_1", "step_2"), *records(1, "deadly"))
    index(whole, run)
    index(database, run, source=OddSource(), processes=2)
    [(path, reason)] = rows(database, "select path, reason from shards join problems p on p.shard_id = shards.id")
    assert (path, reason) == (
        ONE.replace("step_1", "step_2"),
        "the process that read it was killed by SIGKILL; index again to read it",
    )
    assert rows(database, "select state, count(*) from shards group by 1") == [("complete", 3), ("unread", 1)]
    assert value(database, "select count(*) from trajectories where uid not like 's2-%'") == 180
    index(database, run, processes=2)
    everything = "select uid, step, byte_offset, byte_length, line, reward from trajectories order by uid"
    assert rows(database, everything) == rows(whole, everything)
    assert value(database, "select count(*) from problems") == 0


class OddSource(PrimeRLSource):
    """Ends its process at one record, and fails at another."""

    def scan_part(self, *arguments: Any) -> Iterator[Any]:
        for one in super().scan_part(*arguments):
            if getattr(one, "uid", None) == "deadly0":
                os.kill(os.getpid(), signal.SIGKILL)
            if getattr(one, "uid", None) == "broken0":
                raise KeyError("a bug")
            yield one


@pytest.mark.usefixtures("forked")
def test_an_error_in_the_code_is_told_with_its_place(tmp_path: Path) -> None:
    append(tmp_path / "run" / ONE, *records(30), *records(1, "broken"))
    with pytest.raises(RuntimeError, match="KeyError: 'a bug'") as raised:
        index(tmp_path / "x.sqlite", tmp_path / "run", source=OddSource(), processes=2)
    assert "in scan_part" in str(raised.value.__cause__)


SOME = """
import time
from itertools import count
from rltracer_sqlite.cli.index import main
from rltracer_sqlite.sources.prime_rl import scan
read, asked = scan.trace_entries, count()
def some(*arguments):
    if next(asked) >= 20:
        time.sleep(600)
    return read(*arguments)
scan.trace_entries = some
main()
"""


@ps
@posix
def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    for step in range(1, 9):
        append(run / ONE.replace("step_1", f"step_{step}"), *records(60, f"s{step}-"))
    command = [sys.executable, "-c", TAKE_INTERRUPTS + SOME, str(database), str(run), "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        wait_for(lambda: len(members(process.pid)) == 3)
        os.killpg(process.pid, signal.SIGINT)
        printed = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 130
    assert "Traceback" not in printed
    assert members(process.pid) == []
    index(database, run)
    assert value(database, "select count(*) from trajectories") == 480


@posix
def test_no_signal_is_lost_while_a_process_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a signal raises in a finaliser is printed and forgotten, so that they are held back until it has run."""
    held = []

    def finalised(self: Connection) -> None:
        held.append(signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, []))
        self.close()

    monkeypatch.setattr(Connection, "__del__", finalised, raising=False)
    worker = parallel._Worker(get_context("fork"), PrimeRLSource(), tmp_path, [])
    try:
        assert held == [True]
        assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finally:
        worker.end()


def members(group: int) -> list[int]:
    """Return the processes of a process group that have not ended."""
    listed = subprocess.run(["ps", "-eo", "pid=,pgid=,stat="], capture_output=True, text=True, check=True)
    found = [line.split() for line in listed.stdout.splitlines()]
    return [int(pid) for pid, of, state in found if int(of) == group and not state.startswith("Z")]


def wait_for(is_so: Callable[[], bool]) -> None:
    for _ in range(2000):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to pass")
