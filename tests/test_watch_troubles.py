"""Following runs where something is amiss: what is not there yet, cannot be read, is held by others, or has no room."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from rltracer_sqlite.index import database as module
from rltracer_sqlite.index.database import IndexFileError
from rltracer_sqlite.index.followed import Followed
from rltracer_sqlite.index.plan import read_again
from rltracer_sqlite.index.watch import Watch
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import Source
from tests.indexing import index, rows, value
from tests.layouts import append
from tests.watching import ALL, at_step, linked_outside, record, uids, watching


def test_a_run_that_is_not_there_yet_and_one_without_rollouts_are_waited_for(
    tmp_path: Path, run: Path, database: Path
) -> None:
    other = tmp_path / "other"
    with watching(database, run, other) as watch:
        assert watch.look().read == []
        assert [followed.trouble for followed in watch.runs] == [
            f"The run {run} does not exist yet.",
            f"The run {other} does not exist yet.",
        ]
        run.mkdir()
        (run / "train.toml").write_text("x = 1")
        append(other / ALL, record("there"))
        watch.look()
        assert "holds no rollouts of a known format" in watch.runs[0].trouble
        assert watch.runs[1].trouble == ""
        append(run / ALL, record("late"))
        watch.look()
        assert watch.runs[0].trouble == ""
    assert uids(database) == ["there", "late"]


def test_files_that_were_not_recognised_are_not_looked_into_again_while_they_stay(run: Path, database: Path) -> None:
    run.mkdir()
    (run / "notes.jsonl").write_text("{}\n")
    asked: list[int] = []

    def find() -> Source:
        asked.append(1)
        return source_for(run)

    with Watch(database, [Followed(run, find)]) as watch:
        for _ in range(3):
            watch.look()
        trouble = watch.runs[0].trouble
        assert (len(asked), "holds" in trouble) == (1, True)
        append(run / ALL, record("t0"))
        watch.look()
        assert (len(asked), watch.runs[0].trouble) == (2, "")


def test_a_file_that_was_to_be_read_again_and_has_no_size_now_is_told(run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    append(run / at_step(2), record("t1"))
    with watching(database, run) as watch:
        watch.look()
        read_again(watch.connection, [2])
        (run / at_step(2)).unlink()
        (run / at_step(2)).symlink_to("nowhere")
        [done] = watch.look().read
        assert list(done.unread) == [at_step(2)]
        (run / at_step(2)).unlink()
        append(run / at_step(2), record("t1"), record("t2"))
        watch.look()
    assert uids(database, "gone = 0") == ["t0", "t1", "t2"]
    assert rows(database, "select reason from problems") == []


def test_what_cannot_be_read_is_tried_again_ever_more_seldom(run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    bad = linked_outside(run)
    with watching(database, run) as watch:
        reading = [len(watch.look().read) for _ in range(16)]
        assert reading == [1, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
        bad.unlink()
        append(bad, record("inside"))
        watch.look()
    assert uids(database) == ["t0", "inside"]


def test_two_watchers_refuse_each_other_and_others_may_write_between_two_looks(run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    with watching(database, run) as watch:
        watch.look()
        with pytest.raises(IndexFileError, match=rf"in use: process {os.getpid()} is watching {run}\."):
            watching(database, run).__enter__()
        append(run / ALL, record("t1"))
        index(database, run)
        assert watch.look().read == []
        append(run / ALL, record("t2"))
        watch.look()
    assert uids(database) == ["t0", "t1", "t2"]
    assert sorted(path.name for path in database.parent.iterdir()) == ["run", "x.sqlite"]


def test_the_log_is_bounded_as_soon_as_readers_allow(
    run: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rltracer_sqlite.index.database.LARGEST_LOG", 1)
    append(run / ALL, record("t0"))
    log = Path(f"{database}-wal")
    with watching(database, run) as watch:
        watch.connection.execute("pragma busy_timeout = 50")
        watch.look()
        assert log.stat().st_size == 0
        reader = sqlite3.connect(database, isolation_level=None)
        reader.execute("begin")
        reader.execute("select count(*) from trajectories").fetchall()
        append(run / ALL, record("t1"))
        assert watch.look().trouble == ""
        assert log.stat().st_size > 0
        reader.close()
        append(run / ALL, record("t2"))
        watch.look()
        assert log.stat().st_size == 0


def test_a_full_disk_is_said_and_what_was_written_is_consistent(run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    with watching(database, run) as watch:
        watch.look()
        pages = watch.connection.execute("pragma page_count").fetchone()[0]
        watch.connection.execute(f"pragma max_page_count = {pages}")
        append(run / ALL, *[record(f"more{number}", "x" * 300, task={"n": number}) for number in range(200)])
        look = watch.look()
        assert look.trouble == f"{database} cannot be written: database or disk is full."
        assert uids(database) == ["t0"]
        assert value(database, "pragma integrity_check") == "ok"
        for _ in range(4):
            assert watch.look().trouble  # every look tries again: it is not the files that are amiss
        watch.connection.execute("pragma max_page_count = 1000000")
        assert watch.look().trouble == ""
    assert len(uids(database)) == 201


def test_a_database_that_is_removed_ends_the_watch(run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    with watching(database, run) as watch:
        watch.look()
        database.unlink()
        with pytest.raises(IndexFileError, match="was removed while it was watched"):
            watch.look()


def test_no_journal_of_a_database_that_was_removed_stands_beside_the_next_one(
    run: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(run / ALL, record("t0"))
    with watching(database, run) as watch:
        watch.look()
        database.unlink()
        with pytest.raises(IndexFileError):
            watch.look()
    connect, there = module._connect, []

    def spy(path: Path, read_only: bool) -> sqlite3.Connection:
        there.append(Path(f"{path}-wal").exists())
        return connect(path, read_only)

    assert Path(f"{database}-wal").exists()
    monkeypatch.setattr(module, "_connect", spy)
    index(database, run)
    assert (there, uids(database)) == ([False], ["t0"])


def test_a_database_that_was_made_anew_is_gone_on_with(tmp_path: Path, run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    with watching(database, run) as watch:
        watch.look()
        index(tmp_path / "new.sqlite", run)
        for ending in ("-wal", "-shm"):
            Path(f"{database}{ending}").unlink()
        os.replace(tmp_path / "new.sqlite", database)
        append(run / ALL, record("t1"))
        watch.look()
    assert uids(database) == ["t0", "t1"]
