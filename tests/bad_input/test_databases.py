"""What is given instead of an index, and an index that leads elsewhere: one sentence, an exit code, nothing changed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.index.soundness import odd_structure
from tests.bad_input.conftest import FILE
from tests.commands import indexed, inspected, sentence, sentence_beside


def make_newer(path: Path, database: Path) -> None:
    shutil.copy(database, path)
    connection = sqlite3.connect(path)
    connection.execute("pragma user_version = 99")
    connection.close()


def make_other(path: Path, database: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("create table notes (note)")
    connection.close()


def make_torn_database(path: Path, database: Path) -> None:
    path.write_bytes(database.read_bytes()[:5000])


DATABASES: dict[str, tuple[Callable[[Path, Path], Any], str]] = {
    "newer": (make_newer, "was made by a newer version"),
    "no index": (make_other, "no index of rollouts"),
    "no database": (lambda path, database: path.write_text("notes\n"), "not a SQLite database"),
    "torn": (make_torn_database, "not a SQLite database"),
    "a folder": (lambda path, database: path.mkdir(), "is a folder"),
}


@pytest.mark.parametrize("rebuild", [[], ["--rebuild"]])
@pytest.mark.parametrize(("make", "expected"), DATABASES.values(), ids=DATABASES)
def test_what_is_no_index_is_left_alone(
    database: Path, run: Path, tmp_path: Path, make: Callable[[Path, Path], Any], expected: str, rebuild: list[str]
) -> None:
    odd = tmp_path / "odd.sqlite"
    make(odd, database)
    before = odd.read_bytes() if odd.is_file() else b""
    assert expected in sentence(indexed(odd, run, *rebuild))
    assert (odd.read_bytes() if odd.is_file() else b"") == before
    assert sorted(path.name for path in tmp_path.glob("odd*")) == ["odd.sqlite"]
    if odd.is_file() and before.startswith(b"SQLite"):
        assert expected in sentence(inspected(odd))


@pytest.mark.parametrize("place", ["nowhere/x.sqlite", "run/step_1/train/all/traces.jsonl/x.sqlite"])
def test_a_database_needs_a_folder(run: Path, tmp_path: Path, place: str) -> None:
    assert "cannot be written" in sentence(indexed(tmp_path / place, run))


def test_a_source_that_has_changed_is_said(database: Path, run: Path) -> None:
    assert inspected(database, "--trajectory", 1).returncode == 0
    (run / FILE).write_bytes((run / FILE).read_bytes().replace(b'"good"', b'"evil"'))
    assert "has changed since it was indexed" in sentence_beside(inspected(database, "--trajectory", 1))
    (run / FILE).write_bytes(b"x" * (run / FILE).stat().st_size)
    assert "cannot be decoded" in sentence_beside(inspected(database, "--trajectory", 1))
    (run / FILE).write_bytes(b"")
    assert "shorter than when it was indexed" in sentence_beside(inspected(database, "--trajectory", 1))
    (run / FILE).unlink()
    assert "not there any more" in sentence_beside(inspected(database, "--trajectory", 1))
    (run / FILE).symlink_to("/etc/passwd")
    assert "leads outside" in sentence_beside(inspected(database, "--trajectory", 1))


@pytest.mark.parametrize("number", [0, -1, 99, 10**30])
def test_there_is_no_such_trajectory(database: Path, number: int) -> None:
    assert "no trajectory" in sentence(inspected(database, "--trajectory", number))


@pytest.mark.parametrize("given", ["nowhere", "nowhere.sqlite"])
def test_there_is_nothing_to_inspect(tmp_path: Path, given: str) -> None:
    assert "does not exist" in sentence(inspected(tmp_path / given))


HOSTILE = {
    "a path out of the run": ("update shards set path = '../x.sqlite'", "leads outside"),
    "an absolute path": ("update shards set path = '/etc/passwd'", "Not a path inside a run"),
    "a folder": ("update shards set path = 'step_1'", "is a folder"),
    "no path": ("update shards set path = ''", "Not a path inside a run"),
    "a root of its own": ("update runs set root = '/'", "not among the folders that may be read"),
    "a root that is no path": ("update runs set root = '/etc' || char(0)", "which is no folder"),
    "another source": ("update runs set source = 'os'", "not installed"),
    "a place before the file": ("update trajectories set byte_offset = -1", "out of range"),
    "a place far behind it": ("update trajectories set byte_offset = 9223372036854775807", "out of range"),
    "a record of exabytes": ("update trajectories set byte_length = 9223372036854775807", "out of range"),
    "a part of a record": ("update trajectories set byte_length = 20", "cannot be decoded"),
    "an item from the end": ("update trajectories set item = -1", "has changed"),
    "another id": ("update trajectories set uid = 'x'", "has changed"),
    "no shard": ("delete from shards", "no trajectory"),
    "a table less": ("drop table annotations", "cannot be used"),
}


@pytest.mark.threat("T10", "T11")
@pytest.mark.parametrize(("change", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_a_database_from_somebody_else_leads_nowhere(database: Path, change: str, expected: str) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.execute(change)
    connection.close()
    assert expected in sentence_beside(inspected(database, "--trajectory", 1))


def test_an_index_is_known_to_be_sound_without_preparing_its_views(database: Path) -> None:
    asked: list[str] = []
    connection = sqlite3.connect(database)
    connection.set_trace_callback(asked.append)
    assert odd_structure(connection) is None
    connection.close()
    assert asked
    assert not any("table_list" in statement for statement in asked)
