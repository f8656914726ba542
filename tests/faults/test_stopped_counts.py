"""What every list counts after an indexing was stopped or killed in the middle of a file: what is there."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from datasette.app import Datasette

from rltracer_sqlite import list_runs
from tests.commands import indexed, rltracer
from tests.faults.runs import REPOSITORY, SECONDS, content
from tests.indexing import rows
from tests.interrupts import TAKE_INTERRUPTS
from tests.plugin.conftest import get
from tests.plugin.html import words

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX systems")
# Three commits of seven trajectories, then the signal.
PROGRAM = """
import os, sys
from rltracer_sqlite.cli.index import main
from rltracer_sqlite.index.reading import Reading
from rltracer_sqlite.sources.prime_rl import scan
scan.COMMIT_RECORDS = 7
number, left, commit = int(sys.argv.pop(1)), 3, Reading._commit
def counting(*arguments):
    global left
    left -= 1
    reached = commit(*arguments)
    if not left:
        os.kill(os.getpid(), number)
    return reached
Reading._commit = counting
main()
"""


def ended(number: signal.Signals, database: Path, run: Path) -> int:
    """Index until a signal comes in the middle of a file, and return the exit code."""
    arguments = [str(int(number)), str(database), str(run)]
    program = [sys.executable, "-c", TAKE_INTERRUPTS + PROGRAM, *arguments]
    return subprocess.run(program, cwd=REPOSITORY, capture_output=True, check=False, timeout=SECONDS).returncode


async def pages(database: Path) -> list[str]:
    """Return the words of the overview, of the run's page and of the step's."""
    datasette, base = Datasette([str(database)]), f"/-/rltracer/{database.stem}"
    return [words(await get(datasette, f"{base}/{page}")) for page in ("", "run/1", "step/1/1")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_every_place_counts_what_was_read(number: signal.Signals, run: Path, whole: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    assert ended(number, database, run) == (130 if number == signal.SIGINT else -number)
    ids = dict(rows(database, "select uid, id from trajectories"))
    assert len(ids) == 21
    assert rows(database, "select trajectories from steps where step = 1") == [(21,)]
    assert rows(database, "select step from unread_steps order by step") == [(2,), (3,)]
    assert list_runs(database)[0].trajectories == 21
    facts = [json.loads(line) for line in rltracer("inspect", database, "--json").stdout.splitlines()]
    assert facts[0]["trajectories"] == 21
    done = [rltracer(command, database) for command in ("inspect", "runs")]
    said = [one.stdout + one.stderr for one in done]
    overview, of_run, of_step = asyncio.run(pages(database))
    for one in (" ".join(text.split()) for text in (*said, overview, of_run)):
        assert "1 of 1 file not read to its end yet" in one
        assert "21" in one
    assert "21 trajectories" in of_step
    assert "has not been read yet" not in of_step
    assert indexed(database, run).returncode == 0
    assert content(database) == content(whole)
    after = dict(rows(database, "select uid, id from trajectories"))
    assert {uid: after[uid] for uid in ids} == ids
