"""Following runs of which something vanishes or cannot be listed: what stays, and what is read when it is back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rltracer_sqlite.index import reading
from tests.indexing import index, rows, value
from tests.layouts import append
from tests.watching import ALL, at_step, linked_outside, record, uids, watching


def test_a_run_that_vanishes_for_a_while_keeps_its_rows(tmp_path: Path, run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    with watching(database, run) as watch:
        watch.look()
        run.rename(tmp_path / "away")
        watch.look()
        assert watch.runs[0].trouble == f"The run {run} has vanished."
        assert uids(database, "gone = 1") == ["t0"]
        (tmp_path / "away").rename(run)
        append(run / ALL, record("t1"))
        watch.look()
        assert (watch.runs[0].trouble, uids(database, "gone = 0")) == ("", ["t0", "t1"])


def test_a_watch_of_a_run_that_vanished_before_flags_its_rows(tmp_path: Path, run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    index(database, run)
    run.rename(tmp_path / "away")
    with watching(database, run) as watch:
        watch.look()
        assert (watch.runs[0].trouble, uids(database, "gone = 1")) == (f"The run {run} has vanished.", ["t0"])
        (tmp_path / "away").rename(run)
        assert (watch.look().read_bytes, uids(database, "gone = 0")) == (0, ["t0"])


def test_a_file_that_could_not_be_read_before_it_vanished_is_read_when_it_is_back(run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    file = run / at_step(2)
    append(file, record("t1"))
    data = file.read_bytes()
    with watching(database, run) as watch:
        watch.look()
        watch.connection.execute("update shards set state = 'unread' where step = 2")
        watch.connection.execute("delete from trajectories where uid = 't1'")
        status = file.stat()
        file.unlink()
        watch.look()
        file.write_bytes(data)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        watch.look()
    assert uids(database) == ["t0", "t1"]


def test_what_lies_in_a_folder_that_cannot_be_listed_stays_as_it_was(
    run: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(run / ALL, record("t0"))
    append(run / at_step(2), record("t1"))
    listing, closed = os.scandir, run / "rollouts/step_2"

    def refuse(path: Path) -> object:
        if path == closed:
            raise PermissionError(13, "Permission denied")
        return listing(path)

    with watching(database, run) as watch:
        watch.look()
        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", refuse)
            [done] = watch.look().read
            assert (list(done.unread), done.gone) == (["rollouts/step_2"], [])
            assert uids(database, "gone = 0") == ["t0", "t1"]
        append(run / at_step(2), record("t2"))
        watch.look()
    assert uids(database, "gone = 0") == ["t0", "t1", "t2"]
    assert rows(database, "select file, state, problems from shards order by id") == [
        (ALL, "complete", 0), (at_step(2), "complete", 0),
    ]  # fmt: skip
    assert rows(database, "select reason from problems") == []


def test_what_lies_in_a_folder_that_a_link_out_of_the_run_has_replaced_is_gone(run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    append(run / at_step(2), record("t1"))
    folder, away = (run / at_step(2)).parent, database.parent / "away"
    index(database, run)
    folder.rename(away)
    folder.symlink_to(away)
    for _ in range(2):
        assert list(index(database, run).aside) == ["rollouts/step_2/train/all"]
        assert (uids(database, "gone = 0"), uids(database, "gone = 1")) == (["t0"], ["t1"])
    folder.unlink()
    away.rename(folder)
    index(database, run)
    assert uids(database, "gone = 0") == ["t0", "t1"]


def test_a_file_that_was_never_read_leaves_nothing_when_it_goes(run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    bad = linked_outside(run)
    with watching(database, run) as watch:
        [done] = watch.look().read
        assert list(done.unread) == [at_step(2)]
        shutil.rmtree(bad.parents[2])
        [done] = watch.look().read
        assert done.gone == []
    for table in ("shards", "steps"):
        assert rows(database, f"select step from {table}") == [(1,)]
    assert rows(database, "select reason from problems") == []


def test_a_file_that_held_something_else_leaves_nothing_when_it_goes(run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    append(run / "other.jsonl", {"step": 1, "time": 1.0})
    index(database, run)
    assert value(database, "select count(*) from shards where state = 'aside'") == 1
    (run / "other.jsonl").unlink()
    assert index(database, run).gone == []
    assert rows(database, "select path, state from shards") == [(ALL, "complete")]
    assert rows(database, "select reason from problems") == []


def test_nothing_stays_of_a_file_whose_reading_was_killed_as_it_began(
    run: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(run / ALL, record("t0"))
    index(database, run)
    append(run / at_step(2), record("u0"))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(reading, "open_shard", interrupted)
        with pytest.raises(KeyboardInterrupt):
            index(database, run)
    shutil.rmtree((run / at_step(2)).parents[2])
    index(database, run)
    for table in ("shards", "steps"):
        assert rows(database, f"select step from {table}") == [(1,)]
