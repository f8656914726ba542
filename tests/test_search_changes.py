"""How the full text keeps up with files that grow and change, and what it says that it does not know."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
import zstandard

from rltracer_sqlite.index.database import open_index
from rltracer_sqlite.search import text_coverage
from tests.commands import indexed, rltracer
from tests.indexing import index, value
from tests.searching import SAID, TRACES, found, said, searchable, text, write_step


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a run with three trajectories, indexed in x.sqlite beside it, with its full text."""
    return searchable(tmp_path)


def test_nothing_is_read_again_when_nothing_is_new(run: Path) -> None:
    seen: list[tuple[int, int]] = []
    done = text(run.parent / "x.sqlite", run, progress=lambda read, total: seen.append((read, total)))
    assert (done.trajectories, done.bytes, seen) == (0, 0, [])
    assert (done.searchable, done.total) == (3, 3)


@pytest.mark.parametrize("step", [1, 2], ids=["the same file", "a new file"])
def test_only_what_is_new_is_read(run: Path, step: int) -> None:
    write_step(run, [said("freshly appended", id="new")], step, mode="a")
    index(run.parent / "x.sqlite", run)
    seen: list[tuple[int, int]] = []
    done = text(run.parent / "x.sqlite", run, progress=lambda read, total: seen.append((read, total)))
    length = value(run.parent / "x.sqlite", "select byte_length from trajectories where uid = 'new'")
    assert (done.trajectories, done.rebuilt, seen) == (1, False, [(length, length)])
    assert found(run.parent / "x.sqlite", "appended") == ["new"]
    assert found(run.parent / "x.sqlite", "gasket") == ["said"]


def test_a_rewritten_trajectory_is_found_by_its_new_words_only(run: Path) -> None:
    write_step(run, [said("quite another thing", id="said")])
    index(run.parent / "x.sqlite", run)
    done = text(run.parent / "x.sqlite", run)
    assert (done.rebuilt, done.searchable, done.total) == (True, 1, 1)
    assert found(run.parent / "x.sqlite", "another") == ["said"]
    assert found(run.parent / "x.sqlite", "gasket OR leftmost") == []


def test_a_file_that_says_the_same_is_not_built_anew(run: Path) -> None:
    file = run / TRACES
    os.utime(file, ns=(1, 1))
    index(run.parent / "x.sqlite", run)
    done = text(run.parent / "x.sqlite", run)
    assert (done.trajectories, done.rebuilt, done.changed) == (0, False, 0)


def test_sealing_a_file_changes_nothing(run: Path) -> None:
    file = run / TRACES
    Path(f"{file}.zst").write_bytes(zstandard.compress(file.read_bytes()))
    file.unlink()
    index(run.parent / "x.sqlite", run)
    assert text(run.parent / "x.sqlite", run).rebuilt is False
    assert found(run.parent / "x.sqlite", "gasket") == ["said"]


def test_words_of_removed_trajectories_go_when_they_are_many(run: Path) -> None:
    write_step(run, [said(SAID, id="said")])
    index(run.parent / "x.sqlite", run)
    done = text(run.parent / "x.sqlite", run)
    assert (done.changed, done.rebuilt) == (0, True)
    assert value(run.parent / "x.sqlite", "select count(*) from trajectories_text_docsize") == 1


def test_a_change_waits_while_another_run_cannot_be_read(run: Path) -> None:
    database, other = run.parent / "x.sqlite", run.parent / "other"
    write_step(other, [said("in the other run", id="other")])
    index(database, other)
    text(database, run, other)
    write_step(run, [said("quite another thing", id="said")])
    index(database, run)
    done = text(database, run)  # `other` may not be read now
    assert (done.rebuilt, done.changed) == (False, 1)
    assert found(database, '"in the other run"') == ["other"]
    assert text(database, run, other, rebuild=True).skipped == {}
    assert found(database, "gasket") == []
    assert found(database, '"in the other run"') == ["other"]


def test_coverage_counts_what_can_be_searched(run: Path) -> None:
    write_step(run, [said("later", id="late")], mode="a")
    index(run.parent / "x.sqlite", run)
    connection = open_index(run.parent / "x.sqlite")
    assert text_coverage(connection)[:2] == (3, 4)
    connection.close()


def test_what_is_removed_counts_no_longer(run: Path) -> None:
    database = run.parent / "x.sqlite"
    file = run / TRACES
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([b"{broken\n", lines[1], b"{broken\n"]))
    index(database, run)
    for _ in range(2):  # before and after the full text is brought up to date
        connection = open_index(database)
        assert (text_coverage(connection)[:2], text_coverage(connection).later) == ((1, 1), 0)
        connection.close()
        text(database, run)


def test_there_are_never_more_that_can_be_searched_than_there_are(run: Path) -> None:
    connection = sqlite3.connect(run.parent / "x.sqlite")
    connection.execute("insert into trajectories_text_digests values (99, 1)")  # as earlier versions left them
    assert text_coverage(connection)[:2] == (3, 3)
    connection.close()


def test_an_indexing_says_what_the_full_text_does_not_know(run: Path) -> None:
    database = run.parent / "x.sqlite"
    fts = f": rltracer fts {database}\n"
    assert "rltracer fts" not in indexed(database, run).stdout
    write_step(run, [said("later", id="late")], mode="a")
    assert f"\n1 trajectory cannot be searched yet{fts}" in indexed(database, run).stdout
    file = run / TRACES
    file.write_text(file.read_text().replace("gasket", "washer"), encoding="utf-8")
    told = "1 trajectory cannot be searched yet; 3 trajectories are of rewritten files, perhaps found by old words"
    assert f"\n{told}{fts}" in indexed(database, run).stdout
    assert rltracer("fts", database).returncode == 0
    assert "rltracer fts" not in indexed(database, run).stdout
