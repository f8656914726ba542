"""Records that stand in several files: which of them is counted, that the others are told, and that all are read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources.prime_rl import scan
from tests.commands import indexed, rltracer
from tests.indexing import dump, index, rows, stopped_after, value
from tests.layouts import append, line, message, trace
from tests.table_rows import CONTEXT, write_parquet

TRACES = "rollouts/step_{}/train/all/traces.jsonl"
LAST = 12  # step; the path of step 9 is behind its path
PLACES = "select uid, t.step, s.path, t.line from trajectories t join shards s on s.id = t.shard_id order by uid"
COUNTED = "select step, trajectories from steps where trajectories > 0 order by step"
TOLD = "select s.step, p.line, p.byte_offset from problems p join shards s on s.id = p.shard_id order by 1, 2"


def record(uid: str, **extra: Any) -> dict[str, Any]:
    return trace([message("user", "6 * 7?"), message("assistant", "42")], id=uid, rewards={"r": 1.0}, **extra)


def copy_of_a_step(root: Path, steps: Sequence[int], uids: str = "abcd") -> Path:
    for step in steps:
        append(root / TRACES.format(step), *map(record, uids))
    return root


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return copy_of_a_step(tmp_path / "run", range(1, LAST + 1))


def facts(place: Path) -> list[tuple[Any, ...]]:
    listed = map(json.loads, rltracer("inspect", place, "--json").stdout.splitlines())
    return [(fact["step"], fact["split"], fact["trajectories"]) for fact in listed]


@pytest.mark.parametrize("order", [[*range(1, LAST + 1)], [*range(LAST, 0, -1)], [9, 12, 1, 10, 11, *range(2, 9)]])
def test_the_latest_step_has_the_row_whatever_is_read_first(run: Path, tmp_path: Path, order: list[int]) -> None:
    database = tmp_path / "x.sqlite"
    for step in order:
        index(database, run, steps=lambda number, step=step: number == step)
    assert rows(database, PLACES) == [
        (uid, LAST, TRACES.format(LAST), number) for number, uid in enumerate("abcd", start=1)
    ]
    # Of every other record it is told that it is not counted, where it stands.
    assert [row[:2] for row in rows(database, TOLD)] == [(s, n) for s in range(1, LAST) for n in (1, 2, 3, 4)]
    assert value(database, "select sum(problems) from shards") == 4 * (LAST - 1)
    assert rows(database, "select step, trajectories from steps order by step")[-2:] == [(LAST - 1, 0), (LAST, 4)]
    assert value(database, "select count(*) from unread_steps") == 0


def test_of_one_step_the_last_path_has_the_row(tmp_path: Path, database: Path) -> None:
    for name in ("a", "b"):
        append(tmp_path / "run" / f"rollouts/step_1/train/all/{name}.jsonl", record("one"))
    index(database, tmp_path / "run")
    assert [path for _, _, path, _ in rows(database, PLACES)] == ["rollouts/step_1/train/all/b.jsonl"]
    assert value(database, "select reason from problems") == (
        "the id one stands again in rollouts/step_1/train/all/b.jsonl; a trajectory is counted once, "
        "in the latest step that has it, and there by the last of its files"
    )


@pytest.mark.parametrize("records", [1, 2, 100])
def test_within_a_file_the_last_line_has_the_row_wherever_commits_are(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    monkeypatch.setattr(scan, "COMMIT_RECORDS", records)
    append(tmp_path / "run" / TRACES.format(1), *map(record, "abacb"))
    index(database, tmp_path / "run")
    assert [row[3] for row in rows(database, PLACES)] == [3, 5, 4]
    assert [row[1] for row in rows(database, TOLD)] == [1, 2]
    reason = value(database, "select reason from problems limit 1")
    assert reason == "the id a stands again in a later line; a trajectory is counted once, by its last line"


@pytest.mark.parametrize("commits", [1, 6, 15])
def test_a_reading_that_is_stopped_ends_as_one_that_is_not(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    monkeypatch.setattr(scan, "COMMIT_RECORDS", 3)
    whole, database = tmp_path / "whole.sqlite", tmp_path / "x.sqlite"
    stopped_after(commits, database, run)
    index(database, run)
    index(whole, run)
    ended, undisturbed = ([row for row in dump(one) if "sqlite_stat" not in row] for one in (database, whole))
    assert ended == undisturbed


def test_every_step_is_read_and_those_without_a_trajectory_say_why(run: Path, database: Path) -> None:
    assert indexed(database, run).returncode == 0
    assert facts(database) == [(step, "train", 4 * (step == LAST)) for step in range(1, LAST + 1)]
    listed = rltracer("inspect", database)
    assert "not been read" not in listed.stdout
    assert "not read yet" not in listed.stderr
    said = " ".join(listed.stdout.split())
    assert "No trajectory in steps 1–11 (train): 4 records repeat those of step 12, where they are counted." in said
    assert "read to the end, 44 problems" in rltracer("runs", database).stdout


def test_a_list_of_prompts_that_is_empty_says_why(run: Path, database: Path) -> None:
    indexed(database, run)
    why = (
        "No trajectory of step 9 was found. rollouts/step_9/train/all/traces.jsonl: 4 records repeat those of "
        "step 12, where they are counted."
    )
    assert " ".join(rltracer("inspect", database, "--step", 9).stdout.split()) == why
    done = rltracer("inspect", database, "--step", 9, "--json")
    assert (done.returncode, done.stdout) == (0, "")
    assert why in " ".join(done.stderr.split())


def test_steps_that_were_not_read_are_not_read(run: Path, database: Path) -> None:
    indexed(database, run, "--steps", "10-12")
    assert rltracer("inspect", database).stderr.endswith("9 of 12 steps not read yet.\n")
    said = rltracer("inspect", database, "--step", 9).stdout
    assert said == "Step 9 has not been read yet: rltracer-index reads it.\n"
    # Of a folder each step is read when it is asked for.
    rltracer("inspect", run, "--step", 12)
    rltracer("inspect", run, "--step", 3)
    assert [number for number, _, count in facts(run) if count is not None] == [3, 12]


def test_a_step_whose_file_cannot_be_read_is_not_read(tmp_path: Path, database: Path) -> None:
    run = copy_of_a_step(tmp_path / "run", [1])
    (run / TRACES.format(2)).parent.mkdir(parents=True)
    (run / TRACES.format(2)).symlink_to(tmp_path / "nowhere")
    index(database, run)
    assert rows(database, "select state from shards order by step") == [("complete",), ("unread",)]
    assert rows(database, "select step from unread_steps") == [(2,)]


def test_an_index_of_an_earlier_version_learns_that_they_were_read(run: Path, database: Path) -> None:
    index(database, run)
    whole = dump(database)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("update steps set indexed_at = null where trajectories = 0")
        connection.commit()
    assert value(database, "select count(*) from unread_steps") == LAST - 1
    index(database, run)
    assert dump(database) == whole


def test_a_copy_whose_other_record_goes_is_counted_and_repeats_nothing(run: Path, database: Path) -> None:
    index(database, run)
    ids = rows(database, "select uid, id from trajectories order by uid")
    (run / TRACES.format(LAST)).write_bytes(b"".join(line(record(uid)) for uid in "ab"))
    index(database, run)
    assert rows(database, "select uid, id from trajectories order by uid") == ids
    assert [path for _, _, path, _ in rows(database, PLACES)] == [TRACES.format(step) for step in (12, 12, 11, 11)]
    assert [row[1] for row in rows(database, TOLD) if row[0] == 11] == [1, 2]
    assert rows(database, "select problems from shards where step in (10, 11, 12) order by step") == [(4,), (2,), (0,)]


def test_rows_that_repeat_the_file_before_are_read(tmp_path: Path, database: Path) -> None:
    pytest.importorskip("pyarrow")
    made = [{"prompt": CONTEXT, "completion": [message("assistant", f"{n} " * 30)], "r": 1.0} for n in range(4)]
    others = [{"prompt": CONTEXT, "completion": [message("assistant", "other")], "r": 1.0}]
    for step, held in ((10, made), (20, made), (30, others)):
        write_parquet(tmp_path / "run" / f"completions_{step:05}.parquet", [{"step": step, **one} for one in held])
    indexed(database, tmp_path / "run")
    assert facts(database) == [(10, None, 4), (20, None, 0), (30, None, 1)]
    why = (
        "line 1: 4 rows from here on repeat the end of completions_00010.parquet, the file before this one, "
        "and are counted once."
    )
    assert f"No trajectory in step 20: {why}" in " ".join(rltracer("inspect", database).stdout.split())
    asked = rltracer("inspect", database, "--step", 20)
    assert " ".join(asked.stdout.split()).endswith(f"completions_00020.parquet: {why}")
    assert "not read yet" not in asked.stderr
    drawn = " ".join(rltracer("plot", database, "pass-rate", is_terminal=True).stdout.split())
    assert "All records of step 20 repeat others, where they are counted." in drawn
    assert "not read" not in drawn


def test_a_row_that_moves_to_another_file_is_what_the_record_there_says(run: Path, tmp_path: Path) -> None:
    database, whole, last = tmp_path / "x.sqlite", tmp_path / "whole.sqlite", run / TRACES.format(LAST)
    index(database, run)
    ids = rows(database, "select uid, id from trajectories order by uid")
    kept = last.read_bytes()
    aside = last.parent.parent.parent.rename(tmp_path / "away")
    index(database, run)
    assert {row[1:3] for row in rows(database, PLACES)} == {(LAST - 1, TRACES.format(LAST - 1))}
    assert rows(database, COUNTED) == [(LAST - 1, 4)]
    aside.rename(last.parent.parent.parent)
    index(database, run)
    assert {row[1:3] for row in rows(database, PLACES)} == {(LAST, TRACES.format(LAST))}
    last.write_bytes(line(record("a")) + line(record("new")))
    # A step that is read by itself reads the file too that rows of it have moved to.
    index(database, run, steps=lambda number: number == LAST)
    index(whole, run)
    assert rows(database, PLACES) == rows(whole, PLACES)
    assert [row[:2] for row in rows(database, PLACES)] == [
        ("a", LAST), ("b", LAST - 1), ("c", LAST - 1), ("d", LAST - 1), ("new", LAST)
    ]  # fmt: skip
    assert rows(database, COUNTED) == [(LAST - 1, 3), (LAST, 2)]
    last.write_bytes(kept)
    index(database, run)
    assert rows(database, "select uid, id from trajectories order by uid") == ids


@pytest.mark.parametrize("commits", [2, 3, 5])
def test_fields_are_counted_once_after_a_reading_that_was_stopped(
    run: Path, database: Path, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    monkeypatch.setattr(scan, "COMMIT_RECORDS", 3)
    stopped_after(commits, database, run)
    counted = value(database, "select trajectories from fields where path = 'rewards.r.score'")
    assert counted == value(database, "select count(*) from trajectories")


def test_a_record_that_comes_again_under_effective_is_told_in_whatever_look_it_comes(tmp_path: Path) -> None:
    run, effective = tmp_path / "run", "rollouts/step_1/train/effective/traces.jsonl"
    append(run / TRACES.format(1), record("a"), record("b"))
    append(run / effective, record("a"), record("b"))
    for number in range(3):
        index(tmp_path / "x.sqlite", run)
        assert [row[1] for row in rows(tmp_path / "x.sqlite", TOLD)] == [*range(1, number + 2)][:-1]
        append(run / effective, record("a") if number % 2 == 0 else record("b"))
    index(tmp_path / "x.sqlite", run)
    index(tmp_path / "fresh.sqlite", run)
    assert rows(tmp_path / "x.sqlite", TOLD) == rows(tmp_path / "fresh.sqlite", TOLD)


@pytest.mark.parametrize("emptied", [1, 2])
def test_what_a_record_says_of_itself_is_kept_as_long_as_something_else_speaks_of_it(
    tmp_path: Path, emptied: int
) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    files = [run / "rollouts/step_1/train/effective/traces.jsonl", run / TRACES.format(1)]
    said = "select uid from annotations where producer = 'record'"
    append(files[1], record("a", info={"advantage": 0.5}))
    append(files[0], record("a", info={"advantage": 0.25}))
    index(database, run)
    assert rows(database, said) == [("a",)]
    for file in files[:emptied]:
        file.write_bytes(b"")
    index(database, run)
    assert rows(database, said) == []
    assert rows(database, "select advantage from trajectories") == [(0.5,)][emptied - 1 :]


def test_a_file_that_has_grown_and_takes_over_rows_says_all_of_what_it_says_of_them(tmp_path: Path) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    whole, copies = run / TRACES.format(1), run / "rollouts/step_1/train/effective/traces.jsonl"
    append(whole, record("a"), record("b"))
    append(copies, record("a", reward=0.25))
    index(database, run)
    whole.write_bytes(line(record("b")))
    append(copies, record("c"))
    index(database, run)
    index(tmp_path / "fresh.sqlite", run)
    rewards = "select uid, reward from trajectories order by uid"
    assert rows(database, rewards) == rows(tmp_path / "fresh.sqlite", rewards) == [("a", 0.25), ("b", 1.0), ("c", 1.0)]


def test_a_step_that_all_its_trajectories_have_left_is_none_unless_a_file_is_of_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    append(run / "more.jsonl", record("a"))  # read first, and of no step
    append(run / TRACES.format(1), record("a"))
    (run / TRACES.format(2)).parent.mkdir(parents=True)
    (run / TRACES.format(2)).touch()
    for database in (tmp_path / "x.sqlite", tmp_path / "fresh.sqlite"):
        index(database, run)
        index(database, run)
        assert rows(database, "select step, trajectories from steps order by step") == [(1, 1), (2, 0)]


def test_a_step_whose_files_go_before_they_are_read_is_none(run: Path, database: Path) -> None:
    index(database, run, discover_only=True)
    (run / TRACES.format(3)).unlink()
    for is_only_looked_at in (True, False):
        index(database, run, discover_only=is_only_looked_at)
        assert value(database, "select group_concat(step, ' ') from steps") == "1 2 4 5 6 7 8 9 10 11 12"
