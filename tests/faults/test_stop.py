"""Stopping a command by Ctrl-C or a signal: it says what is left, which can be used and gone on with."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.faults.runs import SECONDS, called, content, names
from tests.faults.stopping import running
from tests.indexing import index
from tests.interrupts import TAKE_INTERRUPTS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX systems")

SIGNALS = [signal.SIGINT, signal.SIGTERM]
# Reading stands still at the beginning of a step, so that the signal comes at a known place. It does so in naps: Python
# would sleep on where the signal came right before the system's sleep began.
STANDS_STILL = """
import os, sys, time
from rltracer_sqlite.cli{module} import main
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
scan = PrimeRLSource.scan_part
def stand_still(*_):
    print("reading", flush=True)
    for _ in range({naps}):
        time.sleep(0.1)
    sys.exit("no signal came")
def slow(self, root, shard, start, stop=None):
    if "step_" + os.environ["STOP_AT"] in shard.path:
        stand_still()
    return scan(self, root, shard, start, stop)
PrimeRLSource.scan_part, PrimeRLSource.conversations = slow, stand_still
main()
"""


def stopped(number: signal.Signals, stop_at: int, *arguments: object, module: str = ".index") -> str:
    """Send a signal to a command when it has begun to read a step; return what it said."""
    program = TAKE_INTERRUPTS + STANDS_STILL.format(module=module, naps=10 * SECONDS)
    command = [sys.executable, "-c", program, *map(str, arguments)]
    with running(command, env={**os.environ, "STOP_AT": str(stop_at)}) as process:
        assert process.stdout is not None
        began = process.stdout.readline()
        process.send_signal(number)
        printed, said = process.communicate()
    assert (process.returncode, began, printed) == (128 + number, "reading\n", ""), said
    return said.strip()


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_what_was_read_before_an_indexing_was_stopped_can_be_used_and_gone_on_with(
    number: signal.Signals, run: Path, whole: Path, tmp_path: Path
) -> None:
    database = tmp_path / "x.sqlite"
    said = stopped(number, 2, database, run)
    assert said == f"Stopped. 40 trajectories of 1 file are in {database}; run the same command again to go on."
    assert names(tmp_path) == ["x.sqlite"]
    shown = called("rltracer", "inspect", database, "--trajectory", "7")
    assert (shown.returncode, "42 because" in shown.stdout) == (0, True), shown.stderr
    assert called("index", database, run).returncode == 0
    assert content(database) == content(whole)


def test_an_indexing_that_is_stopped_at_its_beginning_leaves_nothing(run: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    assert stopped(signal.SIGINT, 1, database, run) == "Stopped. Nothing was written."
    assert names(tmp_path) == []


def test_a_rebuilding_that_is_stopped_leaves_the_index_as_it_was(run: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    index(database, run)
    before = database.read_bytes()
    said = stopped(signal.SIGINT, 2, database, run, "--rebuild")
    assert said == f"Stopped. {database} is as it was."
    assert (names(tmp_path), database.read_bytes()) == (["x.sqlite"], before)


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_an_export_that_is_stopped_writes_nothing(number: signal.Signals, whole: Path, tmp_path: Path) -> None:
    output = tmp_path / "o.jsonl"
    said = stopped(number, 9, "export", whole, "-o", output, module="")
    assert said == "Stopped. The output was not written."
    assert names(tmp_path) == []


def test_with_jobs_a_signal_to_the_command_alone_ends_it(run: Path, tmp_path: Path) -> None:
    said = stopped(signal.SIGTERM, 1, tmp_path / "x.sqlite", run, "--jobs", "2")
    assert said == "Stopped. Nothing was written."
    assert names(tmp_path) == []
