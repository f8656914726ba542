"""What a folder of runs holds: told by every command from one list, with its systems, and nothing behind a number."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rltracer_sqlite.browse import find_runs
from tests.commands import indexed, rltracer, sentence
from tests.layouts import corpora
from tests.small_runs import touch

OTHER = (corpora() or Path("absent")) / "other"

MANY = [f"families/{name}/1.jsonl" for name in "abcdefgh"]
ROW = json.dumps({"input": "6 * 7?", "output": "42", "gts": "42", "score": 1.0, "step": 1})
TRACKIO = "create table traces (messages, metadata, run_name, trace_index)"


def write_trackio(file: Path, schema: str = TRACKIO) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(schema)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            ["a/rollout_data/1.jsonl", "b/rollout_data/1.jsonl"],
            "2 of them: a (1 file, perhaps verl), b (1 file, perhaps verl). ",
        ),
        (
            [*MANY, "old_0.8/1.jsonl", "v1_0.9/1.jsonl", "v1_0.9/2.jsonl"],
            "10 of them: families/* (8 folders, 8 files, perhaps verl), old_0.8 (1 file, perhaps verl), "
            "v1_0.9 (2 files, perhaps verl). ",
        ),
        (
            ["a/completions.jsonl", "b/completions.jsonl", "logs/x.eval", "c/chats.jsonl"],
            "3 of them: a (1 file, ms-swift), b (1 file, ms-swift), c (1 file, of no known name); what this version "
            "does not read yet: logs (1 file, Inspect AI logs). ",
        ),
    ],
    ids=["two", "a folder of many", "several systems"],
)  # fmt: skip
def test_a_refused_folder_is_told_by_all_that_it_holds(tmp_path: Path, files: list[str], said: str) -> None:
    touch(tmp_path / "runs", *files)
    for file in files:
        (tmp_path / "runs" / file).write_text(ROW + "\n")
    assert f"is no run, and holds {said}Give" in sentence(rltracer("inspect", tmp_path / "runs"))


def test_what_is_cut_off_is_listed_by_the_command_that_is_named(tmp_path: Path) -> None:
    names = [f"run{number}/completions/completions_1.parquet" for number in range(9)]
    touch(tmp_path / "runs", *names)
    place = tmp_path / "runs"
    said = sentence(rltracer("analyze", place, "-o", tmp_path / "analysis"))
    assert f"run5 (1 file, trl) and 3 more folders, listed by: rltracer runs {place}. Give {place}/* instead" in said
    assert rltracer("runs", place).stdout.splitlines() == [
        f"{place}: 9 places with files of runs, by their names",
        *(f"  run{number}: 1 file, step 1, trl" for number in range(9)),
        f"  rltracer serve --browse-root {place}",
    ]
    listed = [json.loads(line) for line in rltracer("runs", place, "--json").stdout.splitlines()]
    assert {(one["path"], one["files"], one["system"], *one["steps"]) for one in listed} == {
        (f"run{number}", 1, "trl", 1) for number in range(9)
    }


@pytest.mark.parametrize(
    ("files", "place", "count", "what"),
    [
        (["2025-05-12T20-28-13-04-00_popularity.json", "x.eval"], ".", 2, "Inspect AI logs"),
        (
            ["jobs/now/a__aB3dE0x/result.json", "jobs/now/a__aB3dE0x/config.json", "jobs/now/b__aB3dE1x/result.json"],
            "jobs/now", 3, "trials of Harbor",
        ),
    ],
)  # fmt: skip
def test_every_file_of_a_known_system_is_counted(
    tmp_path: Path, files: list[str], place: str, count: int, what: str
) -> None:
    touch(tmp_path, *files, "notes.json", "result.json")
    assert [(run.path, run.files, run.unread) for run in find_runs(tmp_path).runs] == [(place, count, what)]


def test_of_databases_only_the_tables_tell_whose_they_are(tmp_path: Path) -> None:
    write_trackio(tmp_path / "logged/grpo.db")
    write_trackio(tmp_path / "other/mine.db", "create table traces (messages)")
    touch(tmp_path, "broken/x.db", "broken/y.sqlite")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/z.db").symlink_to(tmp_path / "logged/grpo.db")
    assert [(run.path, run.files, run.unread) for run in find_runs(tmp_path).runs] == [
        ("logged", 1, "traces of trackio")
    ]
    said = sentence(indexed(tmp_path / "x.sqlite", tmp_path))
    assert said.endswith("traces of trackio, which this version does not read yet.")


def test_a_name_is_in_one_line_and_a_long_one_shortened_in_a_sentence(tmp_path: Path) -> None:
    names = ["a\nb", "x" * 200]
    for name in names:
        touch(tmp_path / "runs", f"{name}/rollout_data/1.jsonl")
        (tmp_path / "runs" / name / "rollout_data/1.jsonl").write_text(ROW + "\n")
    listed = rltracer("runs", tmp_path / "runs").stdout.splitlines()[1:3]
    assert listed == ["  a␊b: 1 file, step 1, perhaps verl", f"  {names[1]}: 1 file, step 1, perhaps verl"]
    said = sentence(rltracer("inspect", tmp_path / "runs"))
    assert f"2 of them: a␊b (1 file, perhaps verl), {'x' * 20}…{'x' * 39} (1 file, perhaps verl). " in said


def test_a_folder_without_any_run_is_told_as_such(tmp_path: Path) -> None:
    touch(tmp_path / "runs", "notes.txt")
    assert (
        rltracer("runs", tmp_path / "runs").stdout == f"{tmp_path}/runs: 0 places with files of runs, by their names\n"
    )


@pytest.mark.skipif(not OTHER.is_dir(), reason="the corpora are not here")
def test_every_file_of_the_corpora_is_in_a_place_that_is_listed() -> None:
    listed = {run.path for run in find_runs(OTHER).runs}
    for folder in OTHER.iterdir():
        if folder.is_dir():
            assert any(path == folder.name or path.startswith(f"{folder.name}/") for path in listed), folder
    files = {run.path: run.files for run in find_runs(OTHER).runs}
    assert (files["inspect_ai"], files["trackio"], files["verl/v1_0.9"]) == (7, 1, 3)
