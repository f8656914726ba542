"""Removing or moving a run, killed before one of its statements: it is done or it is not, and can be done again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import refresh_text
from tests.faults.runs import REPOSITORY, SECONDS
from tests.indexing import index

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
# One process for all moments: it is the imports that take long.
PROGRAM = """
import json, os, shutil, signal, sys
from rltracer_sqlite.cli import indexing, run_changes, runs
from rltracer_sqlite.index import database, moving, removing
from rltracer_sqlite.search import tables
from tests.indexing import dump, rows
database, here, *words = sys.argv[1:]

def changed(left):
    def watch(frame, event, argument):
        nonlocal left
        if event == "c_call" and argument.__name__ == "execute":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    sys.stdout = open(os.devnull, "w")
    sys.setprofile(watch)
    try:
        runs.command([here, *words])
    finally:
        os._exit(sys.exc_info()[1].code or 0)

def state():
    assert rows(here, "pragma integrity_check") == [("ok",)]
    return dump(here)

shutil.copy(database, here)
before, statements = state(), 0
def count(frame, event, argument):
    global statements
    statements += event == "c_call" and argument.__name__ == "execute"
sys.stdout, printed = open(os.devnull, "w"), sys.stdout
for _ in range(2):  # at first it asks for more, which is kept
    shutil.copy(database, here)
    statements = 0
    sys.setprofile(count)
    try:
        runs.command([here, *words])
    except SystemExit:
        sys.setprofile(None)
sys.stdout = printed
after, seen = state(), []
# The last statements are those of the change and of closing the index, which finds it whole at any rate.
for moment in range(statements - 29, statements, 4):
    shutil.copy(database, here)
    assert changed(moment) == signal.SIGKILL
    found = state()
    seen.append("before" if found == before else "after" if found == after else "torn")
if "before" in seen:
    shutil.copy(database, here)
    changed(statements - 29 + 4 * (seen.count("before") - 1))
    assert changed(0) == 0 and state() == after
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def database(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of two runs with their full text."""
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(run, folder / "moved")
    shutil.copytree(run, folder / "other")
    for root in (run, folder / "other"):
        index(folder / "x.sqlite", root)
    connection = open_for_writing(folder / "x.sqlite")
    refresh_text(connection, Roots([run, folder]))
    finish_writing(connection)
    return folder / "x.sqlite"


@pytest.mark.parametrize("options", ["--remove run --yes", "--move run {folder}/moved"], ids=["remove", "move"])
def test_a_change_of_a_run_that_is_killed_is_done_or_not(database: Path, tmp_path: Path, options: str) -> None:
    words = options.format(folder=database.parent).split()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(database), str(tmp_path / "x.sqlite"), *words],
        capture_output=True, text=True, check=False, cwd=REPOSITORY, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    kept = seen.count("before")
    assert 0 < kept < len(seen)
    assert seen == ["before"] * kept + ["after"] * (len(seen) - kept)
