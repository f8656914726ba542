"""`rltracer runs`: the runs of an index, removing one with all that is of it, and moving one with all its ids kept."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli import run_changes
from rltracer_sqlite.cli.runs import command
from rltracer_sqlite.index.lock import WATCHING, WriterLock
from rltracer_sqlite.roots import Roots
from tests.commands import Done, indexed, rltracer, sentence
from tests.indexing import dump, rows, value
from tests.layouts import append, append_torn
from tests.watching import ALL, at_step, record, uids

IDS = "select id, uid, run_id, prompt_group_id, shard_id, gone from trajectories order by id"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    append(tmp_path / "run" / ALL, *(record(f"t{number}", metrics={"only": 1.0}) for number in range(3)))
    append(tmp_path / "run" / at_step(2), record("u0"))
    return tmp_path / "run"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    append(tmp_path / "other" / ALL, record("v0", "zebra"), {"no": "rollout"})
    return tmp_path / "other"


@pytest.fixture
def database(tmp_path: Path, run: Path, other: Path) -> Path:
    indexed(tmp_path / "x.sqlite", run, other)
    return tmp_path / "x.sqlite"


def runs(database: Path, *options: object) -> Done:
    return rltracer("runs", database, *options)


def found(database: Path, word: str) -> list[str]:
    said = rltracer("search", database, word, "--json").stdout.splitlines()
    return [json.loads(line)["uid"] for line in said]


def test_the_runs_are_listed_with_their_folders_and_how_complete_they_are(
    run: Path, other: Path, database: Path
) -> None:
    append_torn(run / ALL, record("t3"))
    indexed(database, run)
    unread = value(database, "select count(*) from problems")
    assert runs(database).stdout.splitlines() == [
        f"{database}: 2 runs",
        "  1  run: 4 trajectories, 1 of 2 files has an unfinished last line, of step 1",
        "     train: 4 scored, pass rate 1.000, mean reward 1.000",
        "     success: reward >= 1",
        f"     {run}",
        "  2  other: 1 trajectory, read to the end, 1 problem",
        "     train: 1 scored, pass rate 1.000, mean reward 1.000",
        "     success: reward >= 1",
        f"     {other}",
        f"  rltracer inspect {database} --problems",
    ]
    assert [json.loads(line)["problems"] for line in runs(database, "--json").stdout.splitlines()] == [0, unread]
    assert [json.loads(line)["root"] for line in runs(database, "--json").stdout.splitlines()] == [str(run), str(other)]


def test_a_name_that_somebody_made_stays_in_its_line(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("update runs set name = ?, root = ? where id = 1", ("run\n  9  \x1b[1mmine", "/a\n\tb"))
    connection.execute("update shards set file = ?", ("../a\n0 problems",))
    connection.commit()
    connection.close()
    shown = runs(database).stdout.splitlines()
    named = "  1  run\u240a  9  \u241b[1mmine: 4 trajectories, read completely"
    assert (shown[1], shown[4]) == (named, "     /a\u240a\u2409b")
    assert len(shown) == 10
    assert rltracer("inspect", database, "--problems").stdout.startswith("other: ../a\u240a0 problems line 2: ")
    assert rltracer("success", database, "1").stdout.startswith("run\u240a  9  \u241b[1mmine: ")
    said = runs(database, "--remove", "1", "--yes").stdout
    assert said.startswith("Removed run\u240a  9  \u241b[1mmine (4 trajectories, /a\u240a\u2409b).")


def test_a_run_that_is_removed_leaves_what_the_index_of_the_others_has(
    tmp_path: Path, run: Path, other: Path, database: Path
) -> None:
    said = runs(database, "--remove", "run", "--yes").stdout
    assert said == f"Removed run (4 trajectories, {run}). Its files are where they were.\n"
    assert rows(database, "pragma foreign_key_check") == []
    tables = rows(
        database,
        "select m.name from sqlite_master m, pragma_table_info(m.name) c where m.type = 'table' and c.name = 'run_id'",
    )
    assert len(tables) >= 6
    for (table,) in tables:
        assert value(database, f"select count(*) from {table} where run_id <> 2") == 0, table
    assert value(database, "select trajectories from fields where path = 'metrics.only'") == 0
    indexed(tmp_path / "only.sqlite", other)
    for table in ("prompts", "problems", "steps", "shards", "prompt_groups", "trajectories", "step_values"):
        count = f"select count(*) from {table}"
        assert value(database, count) == value(tmp_path / "only.sqlite", count), table
    assert (run / ALL).exists()


def test_numbers_are_not_used_again(run: Path, other: Path, database: Path) -> None:
    ids = {row[0] for row in rows(database, IDS)}
    groups = {row[0] for row in rows(database, "select id from prompt_groups")}
    for name in ("other", "run"):
        assert runs(database, "--remove", name, "--yes").returncode == 0
    indexed(database, run, other)
    assert not ids & {row[0] for row in rows(database, IDS)}
    assert not groups & {row[0] for row in rows(database, "select id from prompt_groups")}
    assert rows(database, "select id, name from runs order by id") == [(3, "run"), (4, "other")]


def test_what_was_removed_is_not_found(run: Path, database: Path) -> None:
    assert rltracer("fts", database).returncode == 0
    assert found(database, "zebra") == ["v0"]
    said = runs(database, "--remove", "other", "--yes").stdout
    assert f"rltracer fts {database} --rebuild" in said
    assert (found(database, "zebra"), len(found(database, "42"))) == ([], 4)
    assert "full text" not in runs(database, "--remove", "run", "--yes").stdout
    assert value(database, "select count(*) from trajectories_text_docsize") == 0
    indexed(database, run, "--fts")
    assert sorted(found(database, "42")) == ["t0", "t1", "t2", "u0"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--remove", "run"], "--remove asks first, and here is nobody to answer: give --yes."),
        (["--remove", "run", "--move", "run", "."], "--remove and --move ask for different things: give one of them."),
        (["--remove", "no", "--yes"], "The index {db} has no run 'no'. It holds: run, other."),
        (["--remove", "ru", "--yes"], "'ru' is the beginning of run: give its whole name."),
        (["--move", "oth", "."], "'oth' is the beginning of other: give its whole name."),
    ],
)
def test_what_cannot_be_meant_changes_nothing(database: Path, options: list[str], said: str) -> None:
    before = database.read_bytes()
    is_wrong_by_itself = said.startswith("--remove")
    assert sentence(runs(database, *options), code=2 if is_wrong_by_itself else 1) == said.format(db=database)
    assert database.read_bytes() == before


@pytest.mark.parametrize("answer", ["y\n", "n\n", ""], ids=["yes", "no", "end of input"])
def test_a_terminal_is_asked(database: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr(run_changes, "is_answered", lambda: True)
    done = CliRunner().invoke(command, [str(database), "--remove", "run"], input=answer)
    assert (done.exit_code == 0) == (answer == "y\n")
    assert len(rows(database, "select 1 from runs")) == (1 if answer == "y\n" else 2)


def test_an_index_that_is_watched_is_not_changed(tmp_path: Path, run: Path, database: Path) -> None:
    run.rename(tmp_path / "moved")
    with WriterLock(database, "watching", right=WATCHING):
        for options in (["--remove", "run", "--yes"], ["--move", "run", tmp_path / "moved"]):
            assert sentence(runs(database, *options)).startswith(f"{database} is in use: process ")
    assert len(rows(database, "select 1 from runs")) == 2


@pytest.mark.parametrize("is_flagged", [False, True], ids=["at once", "after it was found to have vanished"])
def test_a_run_that_has_moved_keeps_every_row(tmp_path: Path, run: Path, database: Path, is_flagged: bool) -> None:
    before, moved = dump(database), tmp_path / "elsewhere" / "new"
    moved.parent.mkdir()
    run.rename(moved)
    if is_flagged:
        indexed(database, run)
    assert runs(database, "--move", "run", moved).stdout == f"run is at {moved} now; 4 trajectories kept.\n"
    assert [line.replace(str(moved), str(run)) for line in dump(database)] == before
    assert Roots.for_database(None).check(moved) == moved
    assert "42" in rltracer("inspect", database, "--trajectory", "1").stdout
    assert "Read 0 bytes" in indexed(database, moved).stdout
    assert value(database, "select count(*) from runs") == 2


def test_a_copy_with_other_times_is_read_again_with_its_ids_kept(tmp_path: Path, run: Path, database: Path) -> None:
    before = rows(database, IDS)
    shutil.copytree(run, tmp_path / "copy")
    for file in (tmp_path / "copy").rglob("traces.jsonl"):
        os.utime(file, (1, 1))
    append(tmp_path / "copy" / ALL, record("t3"))
    assert runs(database, "--move", "run", tmp_path / "copy").returncode == 0
    indexed(database, tmp_path / "copy")
    assert rows(database, IDS)[: len(before)] == before
    assert uids(database, "run_id = 1 and gone = 0") == ["t0", "t1", "t2", "u0", "t3"]


def test_a_file_that_had_vanished_before_the_move_stays_so(tmp_path: Path, run: Path, database: Path) -> None:
    (run / at_step(2)).unlink()
    indexed(database, run)
    run.rename(tmp_path / "moved")
    said = runs(database, "--move", "run", tmp_path / "moved").stdout
    assert said.splitlines()[1] == f"Not there, and flagged as gone: {at_step(2)}"
    assert uids(database, "gone = 1") == ["u0"]


def test_a_tokenizer_inside_of_the_run_moves_with_it(tmp_path: Path, run: Path, database: Path) -> None:
    (run / "tokenizer").mkdir()
    connection = sqlite3.connect(database)
    connection.execute("update runs set tokenizer = ? where id = 1", (str(run / "tokenizer"),))
    connection.commit()
    connection.close()
    run.rename(tmp_path / "moved")
    assert runs(database, "--move", "run", tmp_path / "moved").returncode == 0
    assert value(database, "select tokenizer from runs where id = 1") == str(tmp_path / "moved" / "tokenizer")


def rewrite(copy: Path) -> None:
    (copy / ALL).write_bytes((copy / ALL).read_bytes().replace(b"t0", b"x0"))


def cut(copy: Path) -> None:
    (copy / ALL).write_bytes((copy / ALL).read_bytes()[:-10])


def lose(copy: Path) -> None:
    (copy / ALL).unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (rewrite, f"The folder {{}} does not hold the files of the run run: {ALL} is another file."),
        (cut, f"The folder {{}} does not hold the files of the run run: {ALL} is another file."),
        (lose, f"The folder {{}} does not hold the files of the run run: {ALL} is not there."),
        (shutil.rmtree, "The file or folder {} does not exist."),
    ],
)
def test_other_files_are_refused(tmp_path: Path, run: Path, database: Path, change, said: str) -> None:  # type: ignore[no-untyped-def]
    before, copy = dump(database), tmp_path / "copy"
    shutil.copytree(run, copy)
    change(copy)
    assert sentence(runs(database, "--move", "run", copy)) == said.format(copy)
    assert dump(database) == before


def test_a_place_that_is_taken_is_refused(run: Path, other: Path, database: Path) -> None:
    assert sentence(runs(database, "--move", "run", run)) == "run is there already."
    assert sentence(runs(database, "--move", "run", other)) == "run cannot be where other is: remove that one first."
    shutil.copytree(run, other / "inner")
    assert "lies in another run, other" in sentence(runs(database, "--move", "run", other / "inner"))
