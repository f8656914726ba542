"""Commands that are killed, or that meet each other: one writer at a time, nothing left over, the same in the end."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.replacing import replacing
from tests.faults.killing import killed
from tests.faults.runs import COMMANDS, REPOSITORY, SECONDS, called, content, names, sentence
from tests.indexing import value

pytestmark = [
    pytest.mark.usefixtures("trusted"),
    pytest.mark.skipif(os.name != "posix", reason="signals and file locks are of POSIX systems"),
]
IMPORTS = """
import sqlite_utils
from rltracer_sqlite import export, search
from rltracer_sqlite.cli import {module}, report
from rltracer_sqlite.index import migrations, refresh, statistics
from rltracer_sqlite.sources.prime_rl import load, scan
"""


def killed_command(module: str, command: str, after: int, *arguments: object, since: str = "") -> bool:
    """Run a command that is killed after so many calls; say whether it was, and had not ended before."""
    return killed(IMPORTS.format(module=module), COMMANDS[command], after, *arguments, since=since)


@pytest.mark.parametrize("seed", range(2))
def test_a_killed_export_leaves_the_old_file_or_the_new_one(whole: Path, tmp_path: Path, seed: int) -> None:
    export = ("export", whole, "-o", tmp_path / "out.jsonl", "--acceptance", "any", "--per-prompt", "all")
    (tmp_path / "out.jsonl").write_text("old\n")
    moment, kills = random.Random(seed), 0
    for _ in range(2):
        kills += killed_command("export", "rltracer", moment.randint(3_000, 40_000), *export)
        found = (tmp_path / "out.jsonl").read_text().splitlines()
        assert found == ["old"] or len(found) == 120
    assert kills
    assert called("rltracer", *export).returncode == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 120
    assert names(tmp_path) == ["out.jsonl", "out.jsonl.summary.json"]


@pytest.mark.parametrize("seed", range(2))
def test_a_killed_build_of_the_full_text_is_completed(whole: Path, tmp_path: Path, seed: int) -> None:
    database = shutil.copy(whole, tmp_path / "x.sqlite")
    moment = random.Random(seed)
    assert killed_command("fts", "rltracer", moment.randint(1_000, 9_000), "fts", database)
    assert content(database) == content(whole)
    assert called("rltracer", "fts", database, "--quiet").returncode == 0
    assert value(database, "select count(*) from trajectories_text_docsize") == 120
    assert names(tmp_path) == ["x.sqlite"]


def test_a_killed_rebuild_leaves_the_old_index_and_is_cleaned_up(run: Path, whole: Path, tmp_path: Path) -> None:
    database = shutil.copy(whole, tmp_path / "x.sqlite")
    for after in (1, 2_000):  # what is read before depends on what this machine has compiled, and is not counted
        assert killed_command("index", "index", after, database, run, "--rebuild", since="refresh_run")
        assert content(database) == content(whole)
        assert "x.sqlite.rebuilding" in names(tmp_path)
    assert called("index", database, run, "--quiet").returncode == 0
    assert names(tmp_path) == ["x.sqlite"]


def test_what_another_writer_holds_is_not_taken_for_left_over(tmp_path: Path) -> None:
    target = tmp_path / "out"
    (tmp_path / ".out.1.part").write_bytes(b"of a writer that was killed")
    (tmp_path / ".other.1.part").write_bytes(b"of another file")
    with replacing(target) as file:
        file.write(b"new")
        held = next(tmp_path.glob(f".out.{os.getpid()}.part"))
        held.rename(tmp_path / ".out.2.part")
        with replacing(target) as second:
            second.write(b"second")
        (tmp_path / ".out.2.part").rename(held)
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == [".other.1.part", "out"]


def test_whoever_has_just_got_the_lock_is_waited_for_until_its_name_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rltracer_sqlite.index.lock import IndexFileError, WriterLock

    fcntl = pytest.importorskip("fcntl")
    file = tmp_path / "x.sqlite-lock"
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        monkeypatch.setattr("time.sleep", lambda _: file.write_text("process 7 is indexing"))
        with (
            pytest.raises(IndexFileError, match="is in use: process 7 is indexing"),
            WriterLock(tmp_path / "x.sqlite", "indexing"),
        ):
            raise AssertionError("the lock is held")


def test_two_indexers_of_one_database(run: Path, whole: Path, tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", COMMANDS["index"], str(tmp_path / "x.sqlite"), str(run), "--quiet"]
    both: list[Any] = [subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY) for _ in range(2)]
    said = [one.communicate(timeout=SECONDS)[1] for one in both]
    codes = sorted(one.returncode for one in both)
    assert codes in ([0, 0], [0, 1]), said
    assert all(not text or "is in use: process" in text for text in said)
    assert content(tmp_path / "x.sqlite") == content(whole)
    assert names(tmp_path) == ["x.sqlite"]


def test_a_database_that_somebody_writes_to_is_left_alone(run: Path, whole: Path, tmp_path: Path) -> None:
    from rltracer_sqlite.index.lock import WriterLock

    database = shutil.copy(whole, tmp_path / "x.sqlite")
    before = database.read_bytes()
    with WriterLock(database, "indexing"):
        for command in (("index", database, run), ("index", database, run, "--rebuild")):
            assert f"is in use: process {os.getpid()} is indexing" in sentence(called(*command))
    assert database.read_bytes() == before


def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rltracer_sqlite.index.lock import IndexFileError, WriterLock

    def flock(descriptor: object, operation: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(IndexFileError, match=r"x\.sqlite cannot be locked: Function not implemented\. Put"):
        WriterLock(tmp_path / "x.sqlite", "indexing", wait=9).__enter__()
    assert names(tmp_path) == []
