"""`rltracer-index --watch` as a process: a writer, readers by SQL and through Datasette, signals, and a kill."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from datasette.app import Datasette

from rltracer_sqlite.cli.index import command
from tests.indexing import rows, value
from tests.layouts import line, message, trace
from tests.table_rows import write_lines
from tests.token_layouts import export_line, question

ALL = "rollouts/step_1/train/all/traces.jsonl"
COMMAND = "from rltracer_sqlite.cli.index import main; main()"
SECONDS = 60.0  # generous: a machine may be busy
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX systems")


class Watcher:
    """The command, watching `run` into `database`."""

    def __init__(self, database: Path, run: Path, *options: str, log: Any = subprocess.PIPE) -> None:
        self.database = database
        arguments = [str(database), str(run), "--watch", "--every", "0.1", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *arguments],
            cwd=Path(__file__).parents[1],
            stdout=log,
            stderr=log,
            text=True,
        )

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < end
            time.sleep(0.02)

    def has(self, uid: str) -> Callable[[], bool]:
        return lambda: uid in uids(self.database)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        said, complained = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, said, complained


@pytest.fixture
def watcher(tmp_path: Path) -> Iterator[Callable[..., Watcher]]:
    started: list[Watcher] = []

    def start(*options: str, **log: Any) -> Watcher:
        started.append(Watcher(tmp_path / "x.sqlite", tmp_path / "run", *options, **log))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


def record(uid: str) -> bytes:
    return line(trace(id=uid, messages=[message("user", "6 * 7?"), message("assistant", "42")], rewards={"r": 1.0}))


def write(run: Path, data: bytes) -> None:
    (run / ALL).parent.mkdir(parents=True, exist_ok=True)
    with (run / ALL).open("ab") as file:
        file.write(data)


def uids(database: Path) -> list[str]:
    """Return the trajectories there are; none before there is a schema. Any other error is a reader's error."""
    if not database.exists():
        return []
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        if not connection.execute("select 1 from sqlite_master where name = 'trajectories'").fetchone():
            return []
        return [uid for (uid,) in connection.execute("select uid from trajectories order by id")]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_ends_the_watch_and_leaves_a_plain_database(
    tmp_path: Path, watcher: Callable[..., Watcher], name: str
) -> None:
    if signal.getsignal(getattr(signal, name)) == signal.SIG_IGN:
        pytest.skip("the tests run under nohup, which the watch inherits and heeds")
    running = watcher()
    write(tmp_path / "run", record("t0") + record("t1"))
    running.until(running.has("t1"))
    assert running.process.stdout
    logged = running.process.stdout.readline()  # there while the watch is going on
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d read .* new trajector(y|ies), [12] in all, step 1.*\n", logged)
    code, said, complained = running.stop(getattr(signal, name))
    assert code == 0
    assert "2 new trajectories" in said.splitlines()[-1]
    assert all(one.endswith(" Trying again.") for one in complained.splitlines())  # before there was a file
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "x.sqlite"]
    assert value(tmp_path / "x.sqlite", "pragma journal_mode") == "delete"
    assert value(tmp_path / "x.sqlite", "select count(*) > 0 from sqlite_stat1") == 1


@pytest.mark.parametrize("other", ["--rebuild", "--discover"])
def test_options_that_do_not_go_with_watching_are_refused(tmp_path: Path, other: str) -> None:
    result = CliRunner().invoke(command, [str(tmp_path / "x.sqlite"), str(tmp_path), "--watch", other])
    assert result.exit_code == 2
    assert "--watch goes with neither" in result.output
    assert list(tmp_path.iterdir()) == []


async def answer(datasette: Datasette, path: str) -> Any:
    response = await datasette.client.get(path)
    assert response.status_code == 200, response.text[:500]
    return response


@pytest.mark.asyncio
async def test_whole_lines_appear_and_no_reader_sees_an_error(tmp_path: Path, watcher: Callable[..., Watcher]) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    running = watcher()
    write(run, record("t0"))
    running.until(running.has("t0"))
    datasette = Datasette([str(database)])
    written = ["t0"]
    for number in range(1, 9):
        data = record(f"t{number}")
        for begin in range(0, len(data), len(data) // 3 + 1):
            assert set(uids(database)) <= set(written)
            write(run, data[begin : begin + len(data) // 3 + 1])
            listed = await answer(datasette, "/x/trajectories.json?_shape=array&_size=max")
            assert {row["uid"] for row in listed.json()} <= {*written, f"t{number}"}
            await answer(datasette, "/-/rltracer/x/step/1/1")
        written.append(f"t{number}")
        running.until(running.has(f"t{number}"))
    listed = await answer(datasette, "/x/trajectories.json?_shape=array&_size=max&_sort=id")
    assert [row["uid"] for row in listed.json()] == written
    assert running.stop()[0] == 0
    await answer(datasette, "/-/rltracer/x/run/1")  # somebody who reads is not disturbed by the end of the watch
    assert uids(database) == written
    assert rows(database, "select reason from problems") == []


def test_a_run_that_comes_into_the_folder_beside_the_first_is_told_once(
    tmp_path: Path, watcher: Callable[..., Watcher]
) -> None:
    write(tmp_path / "run" / "a", record("a0"))
    running = watcher()
    running.until(running.has("a0"))
    for number in range(2):
        write(tmp_path / "run" / "b", record(f"b{number}"))
        running.until(running.has(f"b{number}"))
    [told] = running.stop()[2].splitlines()
    assert told.startswith(f"The folder {tmp_path / 'run'} is followed as one run, and holds 2 of them by now: a, b. ")
    assert told.endswith(f"; to tell them apart give {tmp_path / 'run'}/* and another database instead.")


def test_a_folder_of_several_runs_is_not_followed_as_one(tmp_path: Path, watcher: Callable[..., Watcher]) -> None:
    for name in ("a", "b"):
        write(tmp_path / "runs" / name, record(name))
    running = watcher()
    assert running.process.stderr
    assert running.process.stderr.readline().endswith("does not exist yet. Trying again.\n")
    (tmp_path / "runs").rename(tmp_path / "run")
    assert (
        f"{tmp_path / 'run'} is no run, and holds 2 of them: a (1 file, prime-rl), b (1 file, prime-rl). "
        in running.process.stderr.readline()
    )
    assert running.stop()[0] == 0
    assert uids(tmp_path / "x.sqlite") == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file here that is always full")
def test_a_rule_that_scores_nothing_yet_is_told_once(tmp_path: Path, watcher: Callable[..., Watcher]) -> None:
    write(tmp_path / "run", record("first"))
    watching = watcher("--success", "metrics.late>=1")
    for uid in ("second", "third"):
        watching.until(watching.has("first" if uid == "second" else "second"))
        write(tmp_path / "run", record(uid))
    watching.until(watching.has("third"))
    code, _, complained = watching.stop()
    assert (code, complained.count("Warning: The rule metrics.late >= 1 scores 0 of 1 trajectory of run: ")) == (0, 1)
    assert complained.count("Warning") == 1


def test_a_log_without_room_does_not_end_the_watch(tmp_path: Path, watcher: Callable[..., Watcher]) -> None:
    with Path("/dev/full").open("w") as full:
        running = watcher(log=full)
        (tmp_path / "run" / ALL).parent.mkdir(parents=True)
        (tmp_path / "run" / ALL).with_name("more.jsonl").symlink_to(tmp_path / "nowhere")
        for number in range(3):
            write(tmp_path / "run", record(f"t{number}"))
            running.until(running.has(f"t{number}"))
        assert running.stop()[0] == 0
    assert uids(tmp_path / "x.sqlite") == ["t0", "t1", "t2"]
    assert value(tmp_path / "x.sqlite", "pragma journal_mode") == "delete"


def test_the_summary_says_which_text_needs_a_tokenizer(tmp_path: Path, watcher: Callable[..., Watcher]) -> None:
    write_lines(tmp_path / "run/token_exports/step_1/rank_0.jsonl", export_line(question()))
    running = watcher()
    running.until(lambda: len(uids(running.database)) == 1)
    silent, watched = running.stop()[1].splitlines()[-2:]
    assert silent == "run: the text of 1 trajectory needs a tokenizer: rltracer-index --tokenizer PATH."
    assert watched.startswith("Watched for ")


def test_a_killed_watcher_leaves_what_the_next_one_goes_on_with(
    tmp_path: Path, watcher: Callable[..., Watcher]
) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    killed = watcher()
    write(run, record("t0"))
    killed.until(killed.has("t0"))
    killed.process.kill()
    killed.process.wait()
    write(run, record("t1"))
    before = dict(rows(database, "select uid, id from trajectories"))
    running = watcher()
    running.until(running.has("t1"))
    second = watcher()
    _, complained = second.process.communicate(timeout=SECONDS)
    assert second.process.returncode == 1
    assert complained == f"Error: {database} is in use: process {running.process.pid} is watching {run}.\n"
    assert running.stop()[1].splitlines()[-1].startswith("Watched for ")
    assert before.items() <= dict(rows(database, "select uid, id from trajectories")).items()
    assert value(database, "pragma integrity_check") == "ok"
