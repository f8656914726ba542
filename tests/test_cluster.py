"""Indexing on a Dask cluster: the same database as with one process, also when a worker is lost."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltracer_sqlite.index import cluster, parts
from rltracer_sqlite.index.cluster import ClusterError
from rltracer_sqlite.sources.prime_rl import scan as scanning
from tests.indexing import dump, index, rows, value
from tests.layouts import append, message, trace

ONE = "rollouts/step_1/train/all/traces.jsonl"


@pytest.fixture(scope="module", autouse=True)
def distributed() -> Any:
    """Import it as late as here: whoever collects the tests would wait for it."""
    return pytest.importorskip("distributed", reason="the extra dask is not installed")


@pytest.fixture(scope="module")
def workers(distributed: Any) -> Iterator[Any]:
    """A cluster of two processes."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**settings, silence_logs="CRITICAL") as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(parts, "PART_BYTES", 4000)
    monkeypatch.setattr(scanning, "COMMIT_RECORDS", 10)
    said = [message("user", "why?"), message("assistant", "so")]
    for step in (1, 2, 3):
        records = [trace(said, id=f"{step}-{number}", rewards={"r": number % 2}) for number in range(60)]
        append(tmp_path / "run" / ONE.replace("step_1", f"step_{step}"), *records)
    index(tmp_path / "1.sqlite", tmp_path / "run")
    return tmp_path / "run"


def address(workers: Any) -> str:
    return str(workers.scheduler_address).replace("tcp://", "dask://")


def test_the_database_is_the_same_when_a_worker_is_killed_in_the_middle(
    run: Path, workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victims, seen = [worker.pid for worker in workers.workers.values()], set()

    def submitted(self: cluster.Cluster, part: parts.Part) -> None:
        submit(self, part)
        seen.add(len(self.futures))

    def kill(read: int, total: int) -> None:
        if read > total // 3 and victims:
            os.kill(victims.pop(), signal.SIGKILL)
            victims.clear()

    submit = cluster.Cluster._submit
    monkeypatch.setattr(cluster.Cluster, "_submit", submitted)
    index(tmp_path / "x.sqlite", run, executor=address(workers), progress=kill)
    assert victims == []
    assert dump(tmp_path / "x.sqlite") == dump(tmp_path / "1.sqlite")
    assert max(seen) <= cluster.LEAST_AHEAD + 1


def test_a_part_that_ends_every_worker_fails_its_shard_only(
    distributed: Any, run: Path, workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = cluster.Cluster._submit

    def poisoned(self: cluster.Cluster, part: parts.Part) -> None:
        submit(self, part)
        if part.shard.step == 2 and not part.is_first:
            error = distributed.KilledWorker("scan", FakeWorker(), 3)
            self.futures[part.number] = FailedFuture(error)  # type: ignore[assignment]

    monkeypatch.setattr(cluster.Cluster, "_submit", poisoned)
    index(tmp_path / "x.sqlite", run, executor=address(workers))
    assert rows(tmp_path / "x.sqlite", "select step, state from shards order by step") == [
        (1, "complete"), (2, "unread"), (3, "complete")
    ]  # fmt: skip
    reason = value(tmp_path / "x.sqlite", "select reason from problems")
    assert reason == "4 workers in turn ended while they read it; index again to read it"


class FakeWorker:
    address = "tcp://127.0.0.1:1"


class FailedFuture:
    """A future whose workers have all ended; letting that happen takes a minute."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def result(self, timeout: float) -> None:
        raise self.error

    def cancel(self) -> None:
        """Nothing runs."""


class Scaling(io.StringIO):
    """What is written to it brings a worker."""

    def __init__(self, workers: Any) -> None:
        super().__init__()
        self.workers = workers

    def flush(self) -> None:
        self.workers.scale(1)


def test_waiting_for_workers_is_told_once(
    distributed: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENT_SECONDS", 0.1)
    settings = {"n_workers": 0, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**settings, silence_logs="CRITICAL", protocol="tcp") as empty:
        told = Scaling(empty)
        monkeypatch.setattr("sys.stderr", told)
        index(tmp_path / "x.sqlite", run, executor=address(empty))
        assert told.getvalue() == f"Waiting for workers of {address(empty)}.\n"
    assert dump(tmp_path / "x.sqlite") == dump(tmp_path / "1.sqlite")


class LateFuture:
    """A future that ends just after the time for it was up."""

    status = "pending"

    def __init__(self, ended: str, error: Exception | None = None) -> None:
        self.ended, self.error = ended, error

    def result(self, timeout: float | None = None) -> bytes:
        if self.status == "pending":
            self.status = self.ended
            raise TimeoutError
        if self.error:
            raise self.error
        return b"found"


def waited(future: LateFuture) -> bytes:
    """Return what waiting for a future gives, on a cluster with a worker."""
    waiting = object.__new__(cluster.Cluster)
    waiting.client = SimpleNamespace(nthreads=lambda: {"worker": 1})  # type: ignore[assignment]
    return waiting._awaited(future)  # type: ignore[arg-type]


def test_what_ends_as_its_time_is_up_counts_as_it_ended(distributed: Any) -> None:
    assert waited(LateFuture("finished")) == b"found"
    for error in (distributed.KilledWorker("scan", FakeWorker(), 3), TimeoutError("of the task")):
        with pytest.raises(type(error)) as raised:
            waited(LateFuture("error", error))
        assert raised.value is error


@pytest.mark.parametrize(
    ("executor", "sentence"),
    [
        ("dask://127.0.0.1:1", "No Dask scheduler answers at dask://127.0.0.1:1"),
        ("slurm://x", "'slurm://x' is no executor; write dask://host:port"),
        ("dask://", "'dask://' is no executor"),
    ],
)
def test_a_cluster_that_is_not_there_is_told(
    executor: str, sentence: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.2)
    with pytest.raises(ClusterError, match=sentence):
        index(tmp_path / "x.sqlite", run, executor=executor)
