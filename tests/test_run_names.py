"""Names and places of the runs of an index: none has the name of another, lies in another, or is renamed silently."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import indexed, sentence
from tests.indexing import rows
from tests.layouts import append
from tests.watching import ALL, record

RUNS = "select name, root from runs order by id"


def make_run(folder: Path, uid: str = "t0") -> Path:
    append(folder / ALL, record(uid))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "a" / "run")


@pytest.fixture
def database(tmp_path: Path, run: Path) -> Path:
    assert indexed(tmp_path / "x.sqlite", run).returncode == 0
    return tmp_path / "x.sqlite"


def test_a_run_that_gets_another_name_says_what_it_was_called(run: Path, database: Path) -> None:
    said = indexed(database, run, "--name", "best").stdout.splitlines()
    assert said[0].startswith("best: 1 trajectory")
    assert said[1] == "  name: it was called run"
    assert "name:" not in indexed(database, run, "--name", "best").stdout
    assert rows(database, RUNS) == [("best", str(run))]


@pytest.mark.parametrize("is_known", [False, True], ids=["of a new run", "of a run that has another one"])
def test_a_name_that_another_run_has_is_refused(tmp_path: Path, run: Path, database: Path, is_known: bool) -> None:
    other = make_run(tmp_path / "other")
    if is_known:
        indexed(database, other)
    before = rows(database, RUNS)
    said = sentence(indexed(database, other, "--name", "run"))
    assert said == f"The name run is that of another run, {run}: give another one."
    assert sentence(indexed(database, other, "--name", "run", "--watch")) == said
    assert rows(database, RUNS) == before


def test_a_folder_of_the_same_name_gets_a_number_and_says_so(tmp_path: Path, run: Path) -> None:
    other = make_run(tmp_path / "b" / "run")
    for more in ([], ["--discover"]):
        said = indexed(tmp_path / f"{len(more)}.sqlite", run, other, *more).stdout.splitlines()
        second = next(place for place, line in enumerate(said) if line.startswith("run (2): "))
        assert said[second + 1] == f"  name: run is the name of another run, {run}; --name gives this one its own"
    assert "name:" not in indexed(tmp_path / "0.sqlite", other).stdout
    assert rows(tmp_path / "0.sqlite", RUNS) == [("run", str(run)), ("run (2)", str(other))]


@pytest.mark.parametrize("inner", ["rollouts", "rollouts/step_1", ALL])
@pytest.mark.parametrize("option", [(), ("--watch",)], ids=["once", "watched"])
def test_what_lies_in_a_run_is_no_run_beside_it(run: Path, database: Path, inner: str, option: tuple[str, ...]) -> None:
    twice = "and its rollouts would be counted twice: index one of them into another database."
    said = sentence(indexed(database, run / inner, *option))
    assert said == f"{run / inner} lies in another run, run ({run}), {twice}"
    new = database.with_name("new.sqlite")
    indexed(new, run / inner, "--name", "part")
    assert sentence(indexed(new, run, *option)) == f"{run} holds another run, part ({run / inner}), {twice}"
    assert len(rows(new, RUNS)) == len(rows(database, RUNS)) == 1


def test_two_places_of_one_command_may_not_lie_in_each_other(tmp_path: Path, run: Path) -> None:
    done = indexed(tmp_path / "new.sqlite", run, run / "rollouts")
    assert (done.returncode, "lies in another run, run" in done.stderr) == (1, True)
    assert rows(tmp_path / "new.sqlite", RUNS) == [("run", str(run))]


def test_a_link_into_a_run_lies_in_it(tmp_path: Path, run: Path, database: Path) -> None:
    (tmp_path / "link").symlink_to(run / "rollouts")
    assert "lies in another run, run" in sentence(indexed(database, tmp_path / "link"))


def test_a_name_that_begins_like_that_of_a_run_is_beside_it(tmp_path: Path, database: Path) -> None:
    assert indexed(database, make_run(tmp_path / "a" / "run2")).returncode == 0


def test_a_run_that_was_indexed_twice_before_can_still_be_indexed(run: Path, database: Path) -> None:
    inner = run / "rollouts"
    other = database.with_name("other.sqlite")
    indexed(other, inner)
    # As an index that was made before this was refused.
    import sqlite3

    connection = sqlite3.connect(other)
    connection.execute(
        "insert into runs (name, root, source, success_path, success_threshold, created_at)"
        " values ('whole', ?, 'prime-rl', 'reward', 1.0, '2026-01-01T00:00:00Z')",
        (str(run),),
    )
    connection.commit()
    connection.close()
    assert indexed(other, run, inner).returncode == 0
