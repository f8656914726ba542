"""A run whose folder is not there any more, or not now: its rows stay, flagged as gone until it is back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rltracer_sqlite.cli.watch import Told, _log
from rltracer_sqlite.index.database import open_for_writing
from rltracer_sqlite.index.vanished import find_vanished
from tests.commands import indexed, rltracer, sentence
from tests.indexing import dump, rows, value
from tests.layouts import append, append_torn
from tests.watching import ALL, at_step, record, uids, watching

GONE = "select sum(gone), count(*) from trajectories"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    append(tmp_path / "run" / ALL, *(record(f"t{number}") for number in range(3)))
    append(tmp_path / "run" / at_step(2), record("u0"))
    return tmp_path / "run"


@pytest.fixture
def database(tmp_path: Path, run: Path) -> Path:
    assert indexed(tmp_path / "x.sqlite", run).returncode == 0
    return tmp_path / "x.sqlite"


def test_a_run_that_has_vanished_is_told_and_flagged_until_it_is_back(
    tmp_path: Path, run: Path, database: Path
) -> None:
    before = dump(database)
    run.rename(tmp_path / "away")
    for _ in range(2):
        assert sentence(indexed(database, run)) == (
            f"The run {run} has vanished: its 4 trajectories stay in {database}, flagged as gone until it is back; "
            "rltracer runs --move tells where it is now."
        )
        assert rows(database, GONE) == [(4, 4)]
    assert "2 of 2 files gone since they were read, of steps 1–2: " in rltracer("inspect", database).stderr
    assert "file present" in (told := rltracer("export", database, "--dry-run", "--acceptance", "any").stdout)
    assert [line.split()[2] for line in told.splitlines() if line.startswith("file present")] == ["0"]
    (tmp_path / "away").rename(run)
    assert "Read 0 bytes" in indexed(database, run).stdout
    assert dump(database) == before


def test_an_empty_folder_such_as_that_of_a_file_system_that_is_not_mounted_is_a_run_that_has_vanished(
    run: Path, database: Path
) -> None:
    shutil.rmtree(run)
    run.mkdir()
    assert f"The run {run} has vanished: its 4 trajectories stay" in sentence(indexed(database, run))
    assert rows(database, GONE) == [(4, 4)]


def test_a_folder_without_rollouts_that_was_never_indexed_changes_nothing(tmp_path: Path, database: Path) -> None:
    before = database.read_bytes()
    (tmp_path / "empty").mkdir()
    assert sentence(indexed(database, tmp_path / "empty")) == f"The folder {tmp_path / 'empty'} holds no files."
    assert sentence(indexed(database, tmp_path / "none")) == f"The file or folder {tmp_path / 'none'} does not exist."
    assert database.read_bytes() == before


def test_of_several_runs_the_one_that_is_there_is_indexed(tmp_path: Path, run: Path, database: Path) -> None:
    other = tmp_path / "other"
    append(other / ALL, record("v0"))
    run.rename(tmp_path / "away")
    done = indexed(database, run, other)
    assert (done.returncode, "other: 1 trajectory" in done.stdout) == (1, True)
    assert uids(database, "gone = 0") == ["v0"]


def test_a_rebuilding_without_the_run_leaves_the_index_as_it_was(tmp_path: Path, run: Path, database: Path) -> None:
    before = database.read_bytes()
    run.rename(tmp_path / "away")
    assert sentence(indexed(database, run, "--rebuild")) == f"The file or folder {run} does not exist."
    assert database.read_bytes() == before


def test_what_was_not_complete_is_so_again_when_it_is_back(tmp_path: Path, run: Path, database: Path) -> None:
    rest = append_torn(run / ALL, record("t3"))
    aside = run / at_step(3)
    append(aside, {"no": "rollout"})
    indexed(database, run)
    states = "select path, state, indexed_bytes, problems from shards order by path"
    before = rows(database, states)
    assert {state for _, state, _, _ in before} >= {"waiting", "complete"}
    run.rename(tmp_path / "away")
    indexed(database, run)
    assert value(database, "select count(*) from shards where state <> 'gone'") == 0
    (tmp_path / "away").rename(run)
    indexed(database, run)
    assert rows(database, states) == before
    with (run / ALL).open("ab") as file:
        file.write(rest)
    indexed(database, run)
    assert uids(database, "gone = 0") == ["t0", "t1", "t2", "u0", "t3"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may look into every folder")
def test_a_folder_that_may_not_be_looked_into_has_not_vanished(run: Path, database: Path) -> None:
    run.chmod(0)
    try:
        assert "has vanished" not in sentence(indexed(database, run))
    finally:
        run.chmod(0o755)
    assert rows(database, GONE) == [(0, 4)]


def test_a_file_that_cannot_be_asked_for_has_not_vanished(
    run: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stat(*_: object, **__: object) -> os.stat_result:
        raise OSError(116, "Stale file handle")

    connection = open_for_writing(database)
    with monkeypatch.context() as patch:
        patch.setattr("rltracer_sqlite.sources.places.os.stat", stat)
        found = find_vanished(connection, run)
    connection.close()
    assert found is None


def test_rows_that_are_read_from_copies_meanwhile_are_told_with_the_steps_that_they_count_in(
    tmp_path: Path, run: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    effective = ALL.replace("all/", "effective/")
    append(run / effective, record("t0"))
    append(run / effective.replace("step_1", "step_2"), record("t1"), record("t2", ship_step=2))
    append(run / ALL, record("alone"))
    indexed(database, run)
    before = steps(database)
    (run / ALL).rename(tmp_path / "away.jsonl")
    said = indexed(database, run).stdout
    moves = "3 trajectories whose files are gone or unreadable are read from copies now"
    assert f"  gone: {ALL} has vanished; 1 trajectory was in it alone and stays, flagged as gone\n" in said
    assert f"  moved: {moves}; of these 2 count in step 2 instead of step 1\n" in said
    assert steps(database) == [(1, 2), (2, 3)]
    assert "moved: " not in indexed(database, run).stdout
    monkeypatch.setenv("COLUMNS", "200")
    assert (
        f"{ALL}: has vanished; 1 trajectory was in it alone and stays, "
        in rltracer("inspect", database, "--problems").stdout
    )
    (tmp_path / "away.jsonl").rename(run / ALL)
    moves = (
        "3 trajectories whose files are back are read from there again; of these 2 count in step 1 instead of step 2"
    )
    assert f"  moved: {moves}\n" in indexed(database, run).stdout
    assert steps(database) == before


def steps(database: Path) -> list[tuple[int, int]]:
    return rows(database, "select step, count(*) from trajectories group by step order by step")


def test_a_watch_logs_rows_that_move_to_another_step(
    run: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(run / at_step(2).replace("all/", "effective/"), record("t1"))
    with watching(database, run) as watch:
        told = Told(watch.first_id, 0)
        _log(watch, watch.look(), told)
        (run / ALL).unlink()
        _log(watch, watch.look(), told)
    first, second = capsys.readouterr().out.splitlines()
    assert "read from copies" not in first
    moved = "1 trajectory whose file is gone or unreadable is read from copies now; of these 1 counts in step 2 instead"
    assert f", {moved} of step 1, 4 in all, step 2, 1 file gone" in second
