"""Following runs: what each look reads, what it leaves alone, and what follows it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rltracer_sqlite.browse.follow import command as follow
from rltracer_sqlite.browse.follow import follow_opened
from rltracer_sqlite.index.watch import Watch
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import refresh_text
from rltracer_sqlite.sources.base import Source
from rltracer_sqlite.stopping import Stopped
from tests.indexing import index, rows, value
from tests.layouts import LAYOUTS, append, append_torn, line, seal
from tests.watching import ALL, at_step, record, uids, watching


def test_each_look_reads_the_new_bytes_only(run: Path, database: Path) -> None:
    append(run / ALL, *[record(f"t{number}") for number in range(3)])
    with watching(database, run) as watch:
        assert watch.look().read_bytes == (run / ALL).stat().st_size
        assert watch.look().read == []
        missing = append_torn(run / ALL, record("torn"))
        append(run / at_step(2), record("second"))
        assert watch.look().read_bytes == (run / at_step(2)).stat().st_size
        assert uids(database) == ["t0", "t1", "t2", "second"]
        with (run / ALL).open("ab") as file:
            file.write(missing)
        assert watch.look().read_bytes == len(line(record("torn")))
        assert uids(database)[-1] == "torn"


def test_a_look_at_nothing_new_opens_no_file_and_writes_nothing(
    run: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (1, 2, 3):
        append(run / at_step(step), record(f"t{step}"))
    opened: list[Any] = []
    plain_open, plain_stat = os.open, os.stat
    stats: list[str] = []

    def spy_stat(path: Any, *args: Any, **options: Any) -> os.stat_result:
        stats.append(str(path))
        return plain_stat(path, *args, **options)

    with watching(database, run) as watch:
        watch.look()
        before = watch.connection.execute("pragma data_version").fetchone(), watch.connection.total_changes
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", lambda path, *args, **options: opened.append(path) or plain_open(path, *args))
            patch.setattr(os, "stat", spy_stat)
            watch.look()
        assert opened == []
        assert [stats.count(str(run / at_step(step))) for step in (1, 2, 3)] == [1, 1, 1]
        assert (watch.connection.execute("pragma data_version").fetchone(), watch.connection.total_changes) == before


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_a_second_look_finds_nothing_new(tmp_path: Path, database: Path, name: str) -> None:
    written = LAYOUTS[name](tmp_path / "run")
    for step in written.steps:  # a file whose place tells the step and no split
        batch = written.root / f"batches/step_{step}/rank_0.bin"
        batch.parent.mkdir(parents=True)
        batch.write_bytes(b"no batch")
    with watching(database, written.root) as watch:
        assert len(watch.look().read) == 1
        assert watch.look().read == []
    assert value(database, "select count(*) from steps where split is null and trajectories = 0") == 0


def test_steps_that_a_restart_deletes_are_flagged_and_come_back(run: Path, database: Path) -> None:
    for step in (1, 2, 3):
        append(run / at_step(step), record(f"old{step}"))
    with watching(database, run) as watch:
        watch.look()
        for step in (2, 3):
            shutil.rmtree((run / at_step(step)).parents[2])
        assert watch.look().read[0].gone == [at_step(2), at_step(3)]
        assert uids(database, "gone = 1") == ["old2", "old3"]
        append(run / at_step(2), record("old2"), record("new2"))
        watch.look()
        assert rows(database, "select uid, gone from trajectories order by uid") == [
            ("new2", 0), ("old1", 0), ("old2", 0), ("old3", 1),
        ]  # fmt: skip
        append(run / at_step(3), record("new3"))
        watch.look()
        assert sorted(uids(database)) == ["new2", "new3", "old1", "old2"]
        assert uids(database, "gone = 1") == []


def test_a_chunk_is_sealed_under_the_reader(tmp_path: Path, database: Path) -> None:
    written = LAYOUTS["j3"](tmp_path / "run")
    [live] = list(written.root.rglob("traces/stream/*.jsonl"))
    with watching(database, written.root) as watch:
        watch.look()
        places = "select id, uid, shard_id, byte_offset, step, advantage, gone from trajectories order by id"
        before = rows(database, places)
        append(live, record("last of its chunk"))
        source, run_id = watch.runs[0].source, watch.runs[0].run_id
        assert source is not None
        assert run_id is not None
        listed = list(source.shards(written.root))
        seal(live)
        watch.runs[0].source = Listed(source, listed)  # the files were listed before the chunk was sealed
        assert watch.look().read_bytes == len(line(record("last of its chunk")))
        watch.runs[0].source = source
        append(live.with_name("99999.jsonl"), record("first of the next"))
        assert watch.look().read_bytes == len(line(record("first of the next")))
        assert rows(database, places)[:-2] == before
        assert uids(database)[-2:] == ["last of its chunk", "first of the next"]
        assert value(database, "select count(*) from problems where reason like '%not there%'") == 0


class Listed:
    """A source whose files were listed earlier."""

    def __init__(self, source: Source, shards: list[Any]) -> None:
        self.source, self.listed, self.name = source, shards, source.name

    def shards(self, root: Path) -> list[Any]:
        return self.listed

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)


def test_a_watch_leaves_a_plain_file_with_statistics(run: Path, database: Path) -> None:
    with watching(database, run) as watch:
        append(run / ALL, record("t0"))
        watch.look()
        assert value(database, "pragma journal_mode") == "wal"
    assert sorted(path.name for path in database.parent.iterdir()) == ["run", "x.sqlite"]
    assert value(database, "pragma journal_mode") == "delete"
    assert value(database, "select count(*) > 0 from sqlite_stat1 where tbl = 'trajectories'") == 1


def test_a_look_can_be_stopped_in_its_middle(run: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rltracer_sqlite.sources.prime_rl import scan

    monkeypatch.setattr(scan, "COMMIT_RECORDS", 10)
    append(run / ALL, *[record(f"t{number}") for number in range(50)])

    def stop(read: int, total: int) -> None:
        raise Stopped

    with pytest.raises(Stopped), watching(database, run) as watch:
        watch.look(stop)
    assert value(database, "select trajectories from steps") == len(uids(database)) == 10
    with watching(database, run) as watch:
        watch.look()
    assert uids(database) == [f"t{number}" for number in range(50)]


def test_the_full_text_follows(run: Path, database: Path) -> None:
    def refresh(connection: sqlite3.Connection, progress: Any) -> str:
        done = refresh_text(connection, Roots([run]), progress, may_rebuild=False)
        return " ".join(done.skipped.values())

    append(run / ALL, record("t0", "a gasket"))
    found = "select count(*) from trajectories_text where trajectories_text match 'gasket'"
    with watching(database, run, refresh_text=refresh) as watch:
        watch.look()
        assert value(database, found) == 1
        append(run / ALL, record("t1", "another gasket"), record("t2", "a washer"))
        watch.look()
        assert value(database, found) == 2
        (run / ALL).write_bytes(line(record("t0", "no more, and longer than it was")))
        assert watch.look().trouble == ""
        assert uids(database) == ["t0"]


def test_steps_that_were_opened_are_followed_and_those_after_them(tmp_path: Path, run: Path, database: Path) -> None:
    for step in (1, 2, 3):
        append(run / at_step(step), record(f"t{step}"))
    index(database, run, steps=lambda step: step == 2)
    append(tmp_path / "elsewhere" / ALL, record("elsewhere"))
    index(database, tmp_path / "elsewhere")
    append(tmp_path / "elsewhere" / ALL, record("not followed"))
    append(run / at_step(2), record("more"))
    with Watch(database, []) as watch:
        follow_opened(watch, Roots([run]))
        watch.look()
        append(run / at_step(1), record("unopened"))
        append(run / at_step(4), record("t4"))
        follow_opened(watch, Roots([run]))
        watch.look()
    assert uids(database) == ["t2", "elsewhere", "more", "t3", "t4"]


def test_a_follower_says_that_somebody_has_changed_its_index(run: Path, database: Path) -> None:
    append(run / ALL, record("t0"))
    index(database, run)
    with sqlite3.connect(database) as connection:
        connection.execute("pragma foreign_keys = off")
        connection.execute("drop table steps")
    connection.close()
    result = CliRunner().invoke(follow, [str(database), str(run)])
    assert (result.exit_code, "cannot be read: no such table" in result.output) == (1, True)
