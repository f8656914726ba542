"""Indexing with several processes makes the same database as one does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rltracer_sqlite.index import parallel
from tests.indexing import dump, index, value
from tests.layouts import append

from .runs import ONE, RUNS, odd_lines, records


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("name", RUNS)
def test_the_database_is_the_same_with_any_number_of_jobs(name: str, tmp_path: Path) -> None:
    RUNS[name](run := tmp_path / "run")
    expected = index(tmp_path / "1.sqlite", run)
    for jobs in (2, 3):
        done = index(tmp_path / f"{jobs}.sqlite", run, processes=jobs)
        assert done == expected
        assert dump(tmp_path / f"{jobs}.sqlite") == dump(tmp_path / "1.sqlite")
    assert value(tmp_path / "1.sqlite", "select count(*) from trajectories")


@pytest.mark.usefixtures("forked")
def test_growing_and_rewriting_are_the_same_too(tmp_path: Path) -> None:
    odd_lines(run := tmp_path / "run")
    for processes in (1, 2):
        index(tmp_path / f"{processes}.sqlite", run, processes=processes)
    append(run / ONE, *records(60, "more"))
    (run / ONE.replace("step_1", "step_2")).write_bytes(b"")
    append(run / ONE.replace("step_1", "step_2"), *records(40, "other"))
    for processes in (1, 2):
        index(tmp_path / f"{processes}.sqlite", run, processes=processes)
    assert dump(tmp_path / "2.sqlite") == dump(tmp_path / "1.sqlite")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("name", ["odd lines", "verl"])
def test_processes_may_be_started_in_any_way(
    method: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if method == "forkserver" and os.name != "posix":
        pytest.skip("there is no fork server here")
    monkeypatch.setattr(parallel, "_start_method", lambda: method)
    RUNS[name](run := tmp_path / "run")
    index(tmp_path / "1.sqlite", run)
    index(tmp_path / "2.sqlite", run, processes=2)
    assert dump(tmp_path / "2.sqlite") == dump(tmp_path / "1.sqlite")
