"""`rltracer inspect --problems`: what of a run was not read, line by line and file by file; what is alike once."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.commands import indexed, rltracer
from tests.indexing import rows
from tests.layouts import append, message, trace

TRACES = "rollouts/step_{}/train/all/traces.jsonl"
MANY = 30_000
BAD = '{"broken": \n'


def ok(name: str) -> dict[str, Any]:
    return trace([message("user", "Well?"), message("assistant", "Yes.")], id=name, reward=1)


def write(file: Path, text: str) -> None:
    with file.open("a") as opened:
        opened.write(text)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the index of a run with many problems, and with files that wait, are gone and were left aside."""
    folder = tmp_path_factory.mktemp("problems")
    run = folder / "run"
    for step in range(1, 5):
        append(run / TRACES.format(step), ok(f"t{step}"))
    write(run / TRACES.format(1), BAD * MANY + '{"a": {"broken": \n' + "[1]\n")
    write(run / TRACES.format(2), '{"id": "t')
    append(run / "validated.jsonl", {"valid": True})
    indexed(folder / "x.sqlite", run)
    (run / TRACES.format(3)).unlink()
    indexed(folder / "x.sqlite", run)
    return folder / "x.sqlite"


def listed(*arguments: object) -> list[str]:
    done = rltracer("inspect", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_what_is_alike_is_told_once_with_its_first_place(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    file = TRACES.format(1)
    [(offset, reason)] = rows(database, "select byte_offset, reason from problems where line = 2")
    [last] = rows(database, "select line, reason from problems where line = (select max(line) from problems)")
    assert listed(database, "--problems") == [
        f"{file}: {MANY + 1:,} lines like this, first at line 2, offset {offset:,}: {reason}",
        f"{file} line {last[0]:,}: {last[1]}",
        f"{TRACES.format(3)}: has vanished; 1 trajectory was in it alone and stays, flagged as gone",
        f"{TRACES.format(2)} line 2: unfinished, and read when it is complete",
        "validated.jsonl: left aside: results of validating an environment, not rollouts",
        "Each problem is a row of the table problems, and a line with --json:",
        f"  sqlite3 {database} 'select * from problems'",
        f"{MANY + 2:,} problems; 1 file is gone; 1 file has an unfinished last line; 1 file is left aside",
    ]
    assert last[1] != reason


def test_records_that_stand_twice_are_alike_whatever_their_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    for step in (1, 2):
        append(tmp_path / "run" / TRACES.format(step), *(ok(f"{letter} stands again in x") for letter in "pqrs"))
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    first, *_, last = listed(tmp_path / "x.sqlite", "--problems")
    assert first.startswith(
        f"{TRACES.format(1)}: 4 lines like this, first at line 1, offset 0: the id p stands again in x"
    )
    assert last == "4 problems"


def test_a_file_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    append(tmp_path / "run" / TRACES.format(1), ok("t"))
    (tmp_path / "run" / TRACES.format(2)).mkdir(parents=True)
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    assert listed(tmp_path / "x.sqlite", "--problems")[0] == f"{TRACES.format(2)} is a folder."


def test_as_json_every_problem_and_every_file_is_a_line(database: Path) -> None:
    told = [json.loads(line) for line in listed(database, "--problems", "--json")]
    problems = [one for one in told if one["state"] is None]
    known = "select line, byte_offset, byte_length, reason from problems where line is not null order by id"
    assert [tuple(one.values())[1:5] for one in problems] == rows(database, known)
    assert [(one["state"], one["path"]) for one in told[len(problems) :]] == [
        ("gone", TRACES.format(3)), ("waiting", TRACES.format(2)), ("aside", "validated.jsonl"),
    ]  # fmt: skip
    [(indexed_bytes,)] = rows(database, "select indexed_bytes from shards where state = 'waiting'")
    assert (told[-2]["line"], told[-2]["byte_offset"]) == (2, indexed_bytes)


def test_of_several_runs_each_line_names_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    for name in ("a", "b"):
        append(tmp_path / name / TRACES.format(1), ok(name))
        write(tmp_path / name / TRACES.format(1), BAD * 2 + "{")
    database = tmp_path / "x.sqlite"
    indexed(database, tmp_path / "a", tmp_path / "b")
    lines = listed(database, "--problems")
    assert [line.split(":")[0] for line in lines[:4]] == ["a", "a", "b", "b"]
    assert lines[-1] == "4 problems; 2 files have an unfinished last line"
    of_one = listed(database, "--problems", "--run", "b")
    assert of_one[-1] == "2 problems; 1 file has an unfinished last line"
    sql = of_one[-2].split("'")[1]
    assert [row[2] for row in rows(database, sql)] == [2, 3]
    told = [json.loads(line) for line in listed(database, "--problems", "--json")]
    assert [(one["run"], one["state"]) for one in told] == [
        ("a", None), ("a", None), ("a", "waiting"), ("b", None), ("b", None), ("b", "waiting"),
    ]  # fmt: skip


def test_of_a_file_with_many_kinds_the_rest_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    run = tmp_path / "run"
    for letter in "abcdefghijklmnopqrstuvwxy":
        append(run / TRACES.format(1), {letter: 1}, ok(letter))
    append(run / TRACES.format(1), {"y": 1}, ok("z"))
    indexed(tmp_path / "x.sqlite", run)
    for place in (tmp_path / "x.sqlite", run):
        lines = listed(place, "--problems")
        assert [line.partition("keys: ")[2] for line in lines[:20]] == [
            f"{letter})" for letter in "yabcdefghijklmnopqrs"
        ]
        assert lines[20] == f"{TRACES.format(1)}: 5 problems more, of 5 other kinds"
        assert lines[-1] == "26 problems"


def test_of_many_files_in_a_state_the_first_are_listed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for step in range(25):
        append(run / TRACES.format(step), ok(f"t{step}"))
        write(run / TRACES.format(step), "{")
    indexed(tmp_path / "x.sqlite", run)
    lines = " ".join(listed(tmp_path / "x.sqlite", "--problems"))
    assert lines.count("unfinished, and read when it is complete") == 20
    assert lines.endswith(
        "5 more files like this: state 'waiting' in the table shards 0 problems; 25 files have an unfinished last line"
    )


def test_nothing_is_listed_where_all_was_read(tmp_path: Path) -> None:
    append(tmp_path / "run" / TRACES.format(1), ok("t1"))
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    assert listed(tmp_path / "x.sqlite", "--problems") == ["0 problems"]
    assert listed(tmp_path / "x.sqlite", "--problems", "--json") == []


def test_a_reason_that_only_another_program_writes_is_cut(database: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    shutil.copy(database, other)
    with closing(sqlite3.connect(other)) as connection:
        reason = "\x1b[31m<b>" * 20_000
        connection.execute(
            "insert into problems (shard_id, line, reason) select id, 7, ? from shards limit 1", (reason,)
        )
        connection.commit()
    assert sum(map(len, listed(other, "--problems"))) < 10_000
