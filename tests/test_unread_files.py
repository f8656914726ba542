"""A file of a run that cannot be read: all others are indexed, it is named with its step, and the exit code is 1."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rltracer_sqlite import RLTracer
from rltracer_sqlite.cli.status import Status
from rltracer_sqlite.index.states import amiss, run_states
from tests.commands import indexed, rltracer
from tests.indexing import rows, value
from tests.layouts import append, message, trace

TRACES = "rollouts/step_{}/train/all/traces.jsonl"
SAID = [message("user", "Well?"), message("assistant", "Yes.")]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for step in (1, 2, 3):
        append(tmp_path / "run" / TRACES.format(step), trace(SAID, id=f"t{step}", reward=1))
    return tmp_path / "run"


def into_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def out_of_the_run(file: Path) -> None:
    file.replace(file.parents[5] / "elsewhere.jsonl")
    file.symlink_to(file.parents[5] / "elsewhere.jsonl")


def into_a_damaged_archive(file: Path) -> None:
    file.replace(file.with_name("traces.jsonl.zst"))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (into_a_folder, f"{TRACES.format(2)} is a folder."),
        (out_of_the_run, f"{TRACES.format(2)} leads outside the run's folder; what it points to is not read."),
        (into_a_damaged_archive, f"{TRACES.format(2)}.zst is damaged after byte 0: "),
    ],
)
def test_it_is_said_with_its_step_and_the_others_are_indexed(
    run: Path, tmp_path: Path, spoil: Callable[[Path], None], why: str
) -> None:
    spoil(run / TRACES.format(2))
    database = tmp_path / "x.sqlite"
    for jobs in (["--jobs", "1"], ["--jobs", "2"]):
        done = indexed(database, run, *jobs)
        assert done.stderr.startswith(f"Error: run: 1 file could not be read, and the others are indexed: {why}")
        assert (done.returncode, done.stderr.count("\n"), f"  not read: {why}" in done.stdout) == (1, 1, True)
    assert value(database, "select count(*) from trajectories") == 2
    shown = rltracer("inspect", database)
    assert (shown.returncode, shown.stderr.startswith("run: 1 of 3 files could not be read, of step 2: ")) == (0, True)
    assert "Could not be read: step 2. --step N says why." in shown.stdout
    assert "not been read yet" not in shown.stdout
    assert rltracer("inspect", database, "--step", "3").stderr == ""
    listed = rltracer("inspect", database, "--step", "2")
    said = " ".join(listed.stdout.split())
    assert (said.startswith(f"No trajectory of step 2 was found. {why}"), listed.stderr) == (True, "")
    assert indexed(database, run, "--steps", "3", "--quiet") == (0, "", "")


def test_beside_what_the_list_of_a_step_says_of_its_files_that_of_others_is_told(run: Path, tmp_path: Path) -> None:
    into_a_folder(run / TRACES.format(2))
    (run / "loose.jsonl").write_text('{"id": "t')
    indexed(tmp_path / "x.sqlite", run)
    said = rltracer("inspect", tmp_path / "x.sqlite", "--step", "2").stderr
    assert said.startswith("run, step 2: 1 of 2 files that may hold it has an unfinished last line: rltracer inspect ")
    assert rltracer("inspect", tmp_path / "x.sqlite", "--step", "3").stderr.startswith(
        "run, step 3: 1 of 2 files that may hold it has an unfinished last line"
    )


def test_an_empty_file_of_records_is_told(run: Path, tmp_path: Path) -> None:
    (run / TRACES.format(2)).write_bytes(b"")
    done = indexed(tmp_path / "x.sqlite", run)
    assert (done.returncode, f"  empty: {TRACES.format(2)} is empty: its writer may" in done.stdout) == (0, True)
    assert "run: 1 of 3 files is empty, of step 2: " in rltracer("inspect", tmp_path / "x.sqlite").stderr


def test_a_bad_line_is_a_problem_and_no_failure(run: Path, tmp_path: Path) -> None:
    with (run / TRACES.format(2)).open("a") as file:
        file.write("{broken\n{waiting")
    done = indexed(tmp_path / "x.sqlite", run)
    assert (done.returncode, done.stderr) == (0, "")
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection:
        told = amiss(run_states(connection)[1], "how")
    assert told == "1 problem, in step 2; 1 of 3 files has an unfinished last line, of step 2: how."


def test_steps_whose_files_are_gone_are_told_together(run: Path, tmp_path: Path) -> None:
    indexed(tmp_path / "x.sqlite", run)
    for step in (1, 2):
        (run / TRACES.format(step)).unlink()
    assert indexed(tmp_path / "x.sqlite", run).returncode == 0
    shown = rltracer("inspect", tmp_path / "x.sqlite").stderr
    assert "2 of 3 files gone since they were read, of steps 1–2: " in shown


@pytest.mark.parametrize("spoil", [into_a_folder, out_of_the_run, into_a_damaged_archive, Path.unlink])
def test_what_cannot_be_read_any_more_is_told_as_what_is_gone(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    run, database, file = tmp_path / "run", tmp_path / "x.sqlite", tmp_path / "run" / TRACES.format(1)
    kept, other = (trace([*SAID, message("user", more)], id=more, reward=1) for more in ("kept", "other"))
    append(file, kept, other)
    append(file.parents[1] / "effective/traces.jsonl", kept)
    append(run / TRACES.format(2), trace(SAID, id="t2", reward=1))
    indexed(database, run)
    kinds = "select * from trajectories order by id", "select path, state, problems from shards order by path"
    made, before = [rows(database, sql) for sql in kinds], file.read_bytes()
    os.utime(file, (1, 1))  # another file than before, whatever its place is taken by
    spoil(file)
    copies = "path like '%effective%'"
    where = f"select uid, gone, {copies} from trajectories t join shards s on s.id = shard_id order by uid"
    for _ in range(2):
        indexed(database, run)
        assert rows(database, where) == [("kept", 0, 1), ("other", 1, 0), ("t2", 0, 0)]
    with RLTracer(database) as tracer:
        assert len(tracer.trajectory(1).load().messages) == 3
    lost = "1 of {} trajectories counted here cannot be opened: its file is gone"
    for asked, of in ((("--step", 1), 2), (("--hardest", 9), 3), (("--prompt", 1), 3)):
        assert lost.format(of) in rltracer("inspect", database, *asked).stdout
    [first, second] = map(json.loads, rltracer("inspect", database, "--json").stdout.splitlines())
    assert (first["gone"], second["gone"], second["amiss"]) == (1, 0, "")
    assert first["amiss"].endswith("1 of 2 trajectories cannot be opened")
    [present] = [line for line in rltracer("export", database, "--dry-run").stdout.splitlines() if "present" in line]
    assert present.split() == ["file", "present", "2", "1"]
    for path in file.parent.iterdir():
        path.unlink() if path.is_file() or path.is_symlink() else path.rmdir()
    file.write_bytes(before)
    indexed(database, run)
    assert [rows(database, sql) for sql in kinds] == made


def test_a_rebuilding_takes_its_place_beside_a_file_that_cannot_be_read(run: Path, tmp_path: Path) -> None:
    indexed(tmp_path / "x.sqlite", run)
    into_a_folder(run / TRACES.format(2))
    assert indexed(tmp_path / "x.sqlite", run, "--rebuild").returncode == 1
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories") == 2


def test_a_watch_tells_a_sentence_once(capsys: pytest.CaptureFixture[str]) -> None:
    status = Status(quiet=False)
    for reasons in (["a is a folder."], ["a is a folder.", "b is a folder."], []):
        status.tell_once(reasons)
    assert capsys.readouterr().err.splitlines() == ["a is a folder.", "b is a folder."]
