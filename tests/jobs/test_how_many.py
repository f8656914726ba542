"""How many processes index a run, how they are started, and what goes with a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli.index import command
from rltracer_sqlite.index import parallel
from rltracer_sqlite.index.database import IndexFileError
from rltracer_sqlite.index.plan import Job
from rltracer_sqlite.index.scanning import WORTH_IT, cores, processes_for
from rltracer_sqlite.sources.base import START, Shard
from tests.indexing import index
from tests.layouts import append

from .runs import ONE, records


@pytest.mark.parametrize(("platform", "tasks", "method"), [
    ("linux", ["1"], "fork"), ("linux", ["1", "2"], "spawn"), ("linux", None, "spawn"), ("darwin", ["1"], "spawn"),
])  # fmt: skip
def test_processes_are_forked_only_where_that_is_safe(
    platform: str, tasks: list[str] | None, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listdir(folder: str) -> list[str]:
        if tasks is None:
            raise FileNotFoundError(folder)
        return tasks

    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr("threading.active_count", lambda: 1)
    monkeypatch.setattr("os.listdir", listdir)
    assert parallel._start_method() == method


def test_a_cluster_without_its_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    append(tmp_path / "run" / ONE, *records(2))
    with pytest.raises(IndexFileError, match=r"pip install 'datasette-rltracer\[dask\]'"):
        index(tmp_path / "x.sqlite", tmp_path / "run", executor="dask://localhost:8786")


def test_jobs_and_a_cluster_exclude_each_other(tmp_path: Path) -> None:
    arguments = [str(tmp_path / "x.sqlite"), str(tmp_path), "--jobs", "2", "--executor", "dask://localhost:8786"]
    done = CliRunner().invoke(command, arguments)
    assert (done.exit_code, "a cluster has its own workers" in done.output) == (2, True)


def test_only_much_to_read_is_worth_more_than_one_process() -> None:
    shard = Shard(ONE, ONE, "traces")
    little, much = (Job(shard, 1, START, size, 0, again=False) for size in (WORTH_IT - 1, WORTH_IT))
    assert (processes_for([little]), processes_for([little, much])) == (1, cores())
