"""Indexing with several processes: the same database as with one, whatever happens to them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli.index import command
from rltracer_sqlite.index import parallel, parts
from rltracer_sqlite.index.database import IndexFileError
from rltracer_sqlite.index.parallel import Workers
from rltracer_sqlite.index.plan import Job
from rltracer_sqlite.index.scanning import WORTH_IT, cores, processes_for
from rltracer_sqlite.sources.base import START, Position, Shard
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from rltracer_sqlite.sources.prime_rl import scan as scanning
from tests.indexing import dump, index, rows, value
from tests.interrupts import TAKE_INTERRUPTS
from tests.layouts import LAYOUTS, append, append_torn, message, seal, trace
from tests.table_samples import SAMPLES
from tests.token_layouts import export_line, micro_batch, question, write_bin

ps = pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps to list processes")
posix = pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX systems")
STREAM = "monitors/file/traces/stream"
ONE = "rollouts/step_1/train/all/traces.jsonl"


def records(count: int, name: str = "t") -> list[dict[str, Any]]:
    said = [message("user", "why? " * 40), message("assistant", "so")]
    return [trace(said, id=f"{name}{number}", rewards={"r": number % 2}) for number in range(count)]


def odd_lines(root: Path) -> None:
    """A big shard in which much is wrong, copies of it, later facts about it, and others that are sealed."""
    append(root / ONE, *records(40))
    with (root / ONE).open("ab") as file:
        file.write(b'\n{"other": 1}\n{"other": 2}\r\n   \nno JSON\n' * 30)
    append(root / ONE, *records(3, "again"), *records(20), trace([message("user", "x" * 20_000)], id="long"))
    append_torn(root / ONE, records(1)[0])
    append(root / ONE.replace("all", "effective"), *records(30))
    append(root / ONE.replace("step_1", "step_2"), *records(50, "second"), *records(5))
    (root / "rollouts" / "notes.jsonl").write_bytes(b'{"a": 1}\n' * 300)


def sealed_chunks(root: Path) -> None:
    for number in range(3):
        append(root / STREAM / f"{number:05}.jsonl", *records(30, f"c{number}-"))
    seal(root / STREAM / "00000.jsonl", frame_bytes=1000)
    facts = [{"version": 1, "trace_id": f"c1-{number}", "info": {"advantage": 0.5}} for number in range(20)]
    append(root / "monitors/file/traces/annotations/orch/00000.jsonl", *facts)


def token_shards(root: Path) -> None:
    for step in (1, 2):
        samples = [question(f"{step} {number}") for number in range(4)]
        batches = [micro_batch("g20", samples), micro_batch("g20", samples[:1], copy=True)]
        write_bin(root / f"token_exports/step_{step}/rank_0.bin", batches)
        append(root / f"token_exports/step_{step}/rank_1.jsonl", *map(export_line, samples))


def rollouts_of_outputs(root: Path) -> None:
    """Write rollouts of one output to five, across whose lines a file is cut."""
    said = {"input": "user\nWhy?\nassistant\n", "gts": "", "score": 1.0, "step": 1}
    made = [
        {**said, "output": "so " * 40, "uid": f"p{number // 4}_{number % 4}_{part}"}
        for number in range(40)
        for part in range(1 + number % 5)
    ]
    append(root / "rollout_data/1.jsonl", *made)


RUNS: dict[str, Callable[[Path], object]] = {
    "outputs": rollouts_of_outputs,
    "odd lines": odd_lines,
    "sealed chunks": sealed_chunks,
    "token shards": token_shards,
    **{name: LAYOUTS[name] for name in ("j2", "j3", "v1c-0.4.0")},
    **{name: SAMPLES[name][1] for name in ("verl", "skyrl", "chat")},
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 2000)
    monkeypatch.setattr(parts, "BATCH", 3)
    monkeypatch.setattr(parallel, "AHEAD_BYTES", 4000)
    monkeypatch.setattr(scanning, "COMMIT_RECORDS", 16)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the processes from one that has imported what they need: each would import it anew.

    This one may not be forked where it has threads, as a worker of pytest-xdist has.
    """
    if os.name == "posix":
        get_context("forkserver").set_forkserver_preload([__name__])
        monkeypatch.setattr(parallel, "_start_method", lambda: "forkserver")


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


@pytest.mark.usefixtures("forked")
@posix
def test_a_killed_process_fails_one_shard_and_the_next_refresh_reads_it(tmp_path: Path) -> None:
    run, whole, database = tmp_path / "run", tmp_path / "whole.sqlite", tmp_path / "x.sqlite"
    for step in range(1, 5):
        append(run / ONE.replace("step_1", f"step_{step}"), *records(60, f"s{step}-"))
    append(run / ONE.replace("step_1", "step_2"), *records(1, "deadly"))
    index(whole, run)
    index(database, run, source=OddSource(), processes=2)
    [(path, reason)] = rows(database, "select path, reason from shards join problems p on p.shard_id = shards.id")
    assert (path, reason) == (
        ONE.replace("step_1", "step_2"),
        "the process that read it was killed by SIGKILL; index again to read it",
    )
    assert rows(database, "select state, count(*) from shards group by 1") == [("complete", 3), ("unread", 1)]
    assert value(database, "select count(*) from trajectories where uid not like 's2-%'") == 180
    index(database, run, processes=2)
    everything = "select uid, step, byte_offset, byte_length, line, reward from trajectories order by uid"
    assert rows(database, everything) == rows(whole, everything)
    assert value(database, "select count(*) from problems") == 0


class OddSource(PrimeRLSource):
    """Ends its process at one record, and fails at another."""

    def scan_part(self, *arguments: Any) -> Iterator[Any]:
        for one in super().scan_part(*arguments):
            if getattr(one, "uid", None) == "deadly0":
                os.kill(os.getpid(), signal.SIGKILL)
            if getattr(one, "uid", None) == "broken0":
                raise KeyError("a bug")
            yield one


@pytest.mark.usefixtures("forked")
def test_an_error_in_the_code_is_told_with_its_place(tmp_path: Path) -> None:
    append(tmp_path / "run" / ONE, *records(30), *records(1, "broken"))
    with pytest.raises(RuntimeError, match="KeyError: 'a bug'") as raised:
        index(tmp_path / "x.sqlite", tmp_path / "run", source=OddSource(), processes=2)
    assert "in scan_part" in str(raised.value.__cause__)


SOME = """
import time
from itertools import count
from rltracer_sqlite.cli.index import main
from rltracer_sqlite.sources.prime_rl import scan
read, asked = scan.trace_entries, count()
def some(*arguments):
    if next(asked) >= 20:
        time.sleep(600)
    return read(*arguments)
scan.trace_entries = some
main()
"""


@ps
@posix
def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    for step in range(1, 9):
        append(run / ONE.replace("step_1", f"step_{step}"), *records(60, f"s{step}-"))
    command = [sys.executable, "-c", TAKE_INTERRUPTS + SOME, str(database), str(run), "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        wait_for(lambda: len(members(process.pid)) == 3)
        os.killpg(process.pid, signal.SIGINT)
        printed = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 130
    assert "Traceback" not in printed
    assert members(process.pid) == []
    index(database, run)
    assert value(database, "select count(*) from trajectories") == 480


@posix
def test_no_signal_is_lost_while_a_process_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a signal raises in a finaliser is printed and forgotten, so that they are held back until it has run."""
    held = []

    def finalised(self: Connection) -> None:
        held.append(signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, []))
        self.close()

    monkeypatch.setattr(Connection, "__del__", finalised, raising=False)
    worker = parallel._Worker(get_context("fork"), PrimeRLSource(), tmp_path, [])
    try:
        assert held == [True]
        assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finally:
        worker.end()


def members(group: int) -> list[int]:
    """Return the processes of a process group that have not ended."""
    listed = subprocess.run(["ps", "-eo", "pid=,pgid=,stat="], capture_output=True, text=True, check=True)
    found = [line.split() for line in listed.stdout.splitlines()]
    return [int(pid) for pid, of, state in found if int(of) == group and not state.startswith("Z")]


def wait_for(is_so: Callable[[], bool]) -> None:
    for _ in range(2000):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to pass")


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
