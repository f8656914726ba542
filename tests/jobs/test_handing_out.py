"""Parts are handed out to processes, and what these find waits, within bounds."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.index import parallel, parts
from rltracer_sqlite.index.parallel import Workers
from rltracer_sqlite.index.plan import Job
from rltracer_sqlite.sources.base import START, Position, Shard
from tests.indexing import index, value
from tests.layouts import append, message, trace

from .runs import ONE, records

posix = pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX systems")


@posix
@pytest.mark.usefixtures("forked")
def test_many_small_files_are_handed_out_while_their_findings_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many as fill the pipes both ways: who gives a part may not wait for a process that waits to be listened to.
    said = [message("user", "why?"), message("assistant", "so")]
    for step in range(1, 1001):
        append(tmp_path / "run" / ONE.replace("step_1", f"step_{step}"), trace(said, id=f"t{step}", rewards={"r": 1}))
    monkeypatch.setattr(parallel, "AHEAD_BYTES", 1 << 30)
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("two processes wait for one another"))
    signal.alarm(60)
    try:
        index(tmp_path / "x.sqlite", tmp_path / "run", processes=2)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories") == 1000


@pytest.mark.usefixtures("forked")
def test_findings_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "MOST_BUFFERED", 4000)
    append(tmp_path / "run" / ONE, *records(300))
    most, arrive = 0, Workers._arrive

    def watched(self: Workers, part: parts.Part, message: bytes) -> None:
        nonlocal most
        arrive(self, part, message)
        most = max(most, self.buffered)

    monkeypatch.setattr(Workers, "_arrive", watched)
    index(tmp_path / "x.sqlite", tmp_path / "run", processes=3)
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories") == 300
    assert 0 < most < 3 * 4000


class WholeSource:
    """A source without parts, as a package of its own may bring."""

    name = "whole"

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted

    def scan(self, root: Path, shard: Shard, start: Position = START) -> Iterator[Any]:
        for number in range(self.wanted):
            yield Position(number, number)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_source_without_parts_is_scanned_by_whole_shards(method: str, tmp_path: Path) -> None:
    if method == "fork" and sys.platform != "linux":
        pytest.skip("forking is used on Linux")
    source = WholeSource(10)
    jobs = [Job(Shard(name, name, "own"), 1, START, 99_999, 0, again=False) for name in ("a", "b", "c")]
    planned = parts.Parts(source, tmp_path, jobs)  # type: ignore[arg-type]
    with Workers(source, tmp_path, iter(planned), 2, method) as workers:  # type: ignore[arg-type]
        scan = parts.scan_with(planned, workers)
        assert [list(scan(job)) for job in jobs] == [list(source.scan(tmp_path, job.shard)) for job in jobs]
