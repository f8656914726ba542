"""Files that are left aside and cannot be read, or vanish between the walk and the look: what is told of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.index import refresh
from tests.commands import indexed, rltracer
from tests.indexing import index, rows, value
from tests.layouts import append
from tests.left_aside import KINDS, REASONS
from tests.table_samples import SAMPLES
from tests.watching import at_step, record

FILES = "select file, state, problems from shards order by path"
WHY = "select reason from problems order by id"
BY_CONTENT = ("inputs, by content", "validation, by content")
BY_NAME = sorted(set(KINDS) - {*BY_CONTENT})


def into_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def into_a_link_to_nothing(file: Path) -> None:
    file.unlink()
    file.symlink_to("nothing")


def out_of_the_run(file: Path) -> None:
    file.replace(file.parents[1] / "elsewhere")
    file.symlink_to(file.parents[1] / "elsewhere")


def restored(file: Path, content: bytes) -> None:
    file.rmdir() if file.is_dir() else file.unlink()
    file.write_bytes(content)


SPOILT = {
    into_a_folder: "{} is a folder.",
    into_a_link_to_nothing: "{} is a link to 'nothing', where there is nothing (looked under {run}).",
    out_of_the_run: "{} leads outside the run's folder; what it points to is not read.",
}


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("kind", BY_CONTENT)
@pytest.mark.parametrize("was_known", [True, False], ids=["known", "new"])
def test_one_that_has_to_be_looked_into_and_cannot_be_is_a_problem_until_it_can(
    tmp_path: Path, kind: str, spoil: Callable[[Path], None], was_known: bool
) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    [name] = KINDS[kind](run)
    content = (run / name).read_bytes()
    if was_known:
        index(database, run)
        assert (name, "aside", 0) in rows(database, FILES)
    spoil(run / name)
    done = indexed(database, run)
    if spoil is into_a_folder and kind == "validation, by content":
        # Where no file of this name is known a folder may well be called so.
        assert (done.returncode, name in done.stdout, rows(database, WHY)) == (0, False, [])
        return
    if spoil is out_of_the_run and was_known:  # it has not changed
        assert (done.returncode, rows(database, WHY)) == (0, [(REASONS[kind],)])
        return
    why = SPOILT[spoil].format(name, run=run)
    assert (done.returncode, f"  not read: {why}\n" in done.stdout) == (1, True)
    assert (name, "unread", 1) in rows(database, FILES)
    assert rows(database, WHY) == [(why,)]
    assert "left aside" not in done.stdout
    assert rltracer("inspect", database, "--problems").stdout.splitlines()[-1] == "1 problem"
    restored(run / name, content)
    done = indexed(database, run)
    assert (done.returncode, f"  left aside: {name}: {REASONS[kind]}\n" in done.stdout) == (0, True)
    assert (name, "aside", 0) in rows(database, FILES)
    assert rows(database, WHY) == [(REASONS[kind],)]


@pytest.fixture(params=["before its size is asked for", "before it is opened"])
def vanishing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list of files that vanish once, when they have been listed."""
    files: list[Path] = []
    after = request.param == "before it is opened"
    found = refresh.find_jobs

    def find_jobs(*arguments: Any) -> Any:
        jobs = found(*arguments) if after else None
        while files:
            files.pop().unlink()
        return found(*arguments) if jobs is None else jobs

    monkeypatch.setattr(refresh, "find_jobs", find_jobs)
    return files


@pytest.mark.parametrize("kind", BY_CONTENT)
def test_one_that_vanishes_before_it_is_looked_into_is_told_once_and_forgotten(
    tmp_path: Path, kind: str, vanishing: list[Path]
) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    [name] = KINDS[kind](run)
    content = (run / name).read_bytes()
    vanishing.append(run / name)
    done = index(database, run)
    assert (list(done.unread), done.others, done.gone) == ([name], {}, [])
    assert rows(database, WHY) == [(f"{name} is not there any more (looked under {run}).",)]
    others = value(database, "select count(*) from trajectories")
    done = index(database, run)
    assert (done.unread, done.gone, rows(database, WHY)) == ({}, [], [])
    assert name not in {file for file, *_ in rows(database, FILES)}
    (run / name).write_bytes(content)
    done = index(database, run)
    assert list(done.others) == [REASONS[kind]]
    assert (value(database, "select count(*) from trajectories"), rows(database, WHY)) == (others, [(REASONS[kind],)])


@pytest.mark.parametrize("kind", BY_NAME)
def test_one_that_is_known_by_its_name_is_listed_whether_it_is_there_or_not(
    tmp_path: Path, kind: str, vanishing: list[Path]
) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    names = KINDS[kind](run)
    vanishing.extend(run / name for name in names)
    done = index(database, run)
    assert (done.unread, done.aside, done.gone) == ({}, {}, [])
    assert [(why, files.files) for why, files in done.others.items()] == [(REASONS[kind], len(names))]
    done = index(database, run)  # which does not find them any more
    assert (done.others, done.gone, rows(database, WHY)) == ({}, [], [])
    assert value(database, "select count(*) from shards where state <> 'complete'") == 0


def test_of_a_closed_folder_it_is_told_that_it_is_and_what_was_read_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    SAMPLES["skyrl"][1](run)
    [made] = run.glob("dumped_evals/*_evals")
    shutil.copytree(made, run / "dumped_evals/global_step_9_evals")
    index(database, run)
    kept = rows(database, "select uid, gone from trajectories order by id")
    scan = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("global_step_9_evals"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    done = index(database, run)
    assert (list(done.unread), done.gone) == (["dumped_evals/global_step_9_evals"], [])
    assert rows(database, "select uid, gone from trajectories order by id") == kept
    monkeypatch.undo()
    done = index(database, run)
    assert (done.unread, done.gone, done.aside) == ({}, [], {})
    shutil.rmtree(run / "dumped_evals/global_step_9_evals")
    assert [file.startswith("dumped_evals/global_step_9_evals/") for file in index(database, run).gone] == [True]


def test_long_names_are_shortened_where_several_are_named(tmp_path: Path) -> None:
    append(tmp_path / "run" / at_step(1), record("t"))
    for name in (f"a{'x' * 200}.csv", "b.csv"):
        (tmp_path / "run" / name).touch()
    [line] = [line for line in indexed(tmp_path / "x.sqlite", tmp_path / "run").stdout.split("\n") if "aside" in line]
    assert line.startswith(f"  left aside: 2 files (a{'x' * 19}…{'x' * 35}.csv and 1 more): a kind of file")
    assert f"a{'x' * 200}.csv" in rltracer("inspect", tmp_path / "x.sqlite", "--problems").stdout.replace("\n", "")
