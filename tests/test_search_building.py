"""Building the full text: read ahead from file to file, written in bounded pieces, and every text exactly once."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.index.database import finish_writing, open_for_writing, open_index
from rltracer_sqlite.remembered_roots import remember_root
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import ahead, refresh_text, write
from rltracer_sqlite.search.jobs import Job, TextShard
from rltracer_sqlite.search.shard_texts import Row, ShardTexts, Text
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from tests.indexing import index, rows, value
from tests.interrupts import TAKE_INTERRUPTS
from tests.searching import found, said, text, write_step

REPOSITORY = Path(__file__).resolve().parents[1]
STEPS, EACH = 4, 5
SMALL = {
    "batches of one": [("ahead.BATCH_ROWS", 1)],
    "batches of a byte": [("ahead.BATCH_BYTES", 1), ("ahead.AHEAD_BYTES", 1)],
    "pages of two": [("refresh.PAGE_ROWS", 2)],
    "a page that ends with the file": [("refresh.PAGE_ROWS", EACH)],
    "statements of three": [("write.STATEMENT_ROWS", 3)],
    "transactions of a text": [("write.STATEMENT_BYTES", 1), ("write.COMMIT_BYTES", 1)],
    "transactions by time": [("write.COMMIT_SECONDS", 0.0)],
}


def limit(monkeypatch: pytest.MonkeyPatch, *limits: tuple[str, float]) -> None:
    for name, number in limits:
        monkeypatch.setattr(f"rltracer_sqlite.search.{name}", number)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of an indexed run of several files; each trajectory says a word of its own."""
    for step in range(STEPS):
        write_step(tmp_path / "run", [said(f"word{step}x{n}", id=f"{step}-{n}") for n in range(EACH)], step)
    index(tmp_path / "x.sqlite", tmp_path / "run")
    return tmp_path / "run"


def each_is_found_once(database: Path) -> None:
    for step in range(STEPS):
        for number in range(EACH):
            assert found(database, f"word{step}x{number}") == [f"{step}-{number}"]
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("create virtual table temp.words using fts5vocab('main', 'trajectories_text', 'instance')")
        times = connection.execute("select count(*) from words where term like 'word%' group by term").fetchall()
    assert times == [(1,)] * (STEPS * EACH)
    counts = "select count(*), (select count(*) from trajectories_text_docsize) from trajectories_text_digests"
    assert rows(database, counts) == [(STEPS * EACH, STEPS * EACH)]
    assert value(database, "select count(*) from trajectories_text_shards") == STEPS


@pytest.mark.parametrize("name", SMALL)
def test_every_text_is_taken_once_whatever_the_pieces(name: str, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, *SMALL[name])
    seen: list[tuple[int, int]] = []
    done = text(run.parent / "x.sqlite", run, progress=lambda read, total: seen.append((read, total)))
    assert (done.trajectories, done.unreadable, seen[-1][0]) == (STEPS * EACH, 0, seen[-1][1])
    each_is_found_once(run.parent / "x.sqlite")
    assert text(run.parent / "x.sqlite", run).trajectories == 0


@pytest.mark.parametrize("after", [1, 7, 13])
def test_an_interrupted_build_goes_on(after: int, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, ("ahead.BATCH_ROWS", 1), ("write.STATEMENT_ROWS", 2), ("write.COMMIT_BYTES", 1))
    database, looks = run.parent / "x.sqlite", iter(range(100))

    def stop(read: int, total: int) -> None:
        if next(looks) == after:
            raise KeyboardInterrupt

    before_it = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        text(database, run, progress=stop)
    assert threading.active_count() == before_it
    before = value(database, "select count(*) from trajectories_text_digests")
    assert before == (after + 1) // 2 * 2  # all statements that were complete
    assert text(database, run).trajectories == STEPS * EACH - before
    each_is_found_once(database)


def test_a_file_that_is_gone_does_not_stop_the_others_and_is_read_when_it_is_back(run: Path) -> None:
    database, file = run.parent / "x.sqlite", write_step(run, [], 1, mode="a")
    file.rename(run / "kept")
    done = text(database, run)
    assert (done.trajectories, done.unreadable) == ((STEPS - 1) * EACH, EACH)
    (run / "kept").rename(file)
    done = text(database, run)
    assert (done.trajectories, done.unreadable) == (EACH, 0)
    each_is_found_once(database)


def test_a_file_in_another_order_than_it_was_is_one_segment(run: Path) -> None:
    for step in range(STEPS):
        file = write_step(run, [], step, mode="a")
        file.write_bytes(b"".join(reversed(file.read_bytes().splitlines(keepends=True))) + b"\n")
    index(run.parent / "x.sqlite", run)
    text(run.parent / "x.sqlite", run)
    each_is_found_once(run.parent / "x.sqlite")
    assert value(run.parent / "x.sqlite", "select count(distinct segid) from trajectories_text_idx") == 1


def test_a_large_build_merges_nothing_and_a_small_refresh_a_little(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, ("write.STATEMENT_ROWS", 1), ("write.BULK_BYTES", 1))
    segments = "select count(distinct segid) from trajectories_text_idx"
    text(run.parent / "x.sqlite", run)
    assert value(run.parent / "x.sqlite", segments) == STEPS * EACH
    limit(monkeypatch, ("write.BULK_BYTES", 1 << 25))
    write_step(run, [said("and one more", id="more")], 1, mode="a")
    index(run.parent / "x.sqlite", run)
    text(run.parent / "x.sqlite", run)
    assert value(run.parent / "x.sqlite", segments) == 1
    assert found(run.parent / "x.sqlite", "word2x3 OR more") == ["2-3", "more"]


def job(root: Path, number: int) -> Job:
    shard = TextShard(number, f"rollouts/step_{number}/train/all/traces.jsonl", "traces", (), ())
    return Job(PrimeRLSource(), root, shard, only_new=False, bytes=0)


def row(size: int = 1) -> Row:
    return Row(1, "a", 0, size, None, 1, None)


def asked(wanted: Sequence[ahead.Batch], counts: list[int]) -> Iterator[ahead.Batch]:
    for number, batch in enumerate(wanted, start=1):
        counts[0] = number
        yield batch


@pytest.mark.parametrize(("size", "most"), [(1, ahead.AHEAD_BATCHES), (ahead.AHEAD_BYTES, 2), (-(1 << 62), 8)])
def test_it_is_not_read_further_ahead_than_allowed(size: int, most: int, tmp_path: Path) -> None:
    wanted = [one for number in range(30) for one in ahead.batches(job(tmp_path, number), [row(size)])]
    counts, taken = [0], 0
    with closing(ahead.read_ahead(asked(wanted, counts))) as texts:
        for _ in texts:
            assert counts[0] - taken <= most
            taken += 1
    assert taken == 30


def test_the_next_file_is_read_while_texts_are_written(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, read = {number: threading.Event() for number in range(STEPS)}, ShardTexts.read

    def reading(self: ShardTexts, wanted: Sequence[Row]) -> list[Text]:
        begun[int(self.shard.path.split("step_")[1][0])].set()
        return read(self, wanted)

    monkeypatch.setattr(ShardTexts, "read", reading)
    wanted = [one for number in range(STEPS) for one in ahead.batches(job(run, number), [row()])]
    with closing(ahead.read_ahead(wanted)) as texts:
        next(texts)  # nobody asks for more
        assert all(event.wait(timeout=60) for event in begun.values())


class Recording(sqlite3.Connection):
    """A connection that keeps what it was told."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        self.said = {*getattr(self, "said", set()), sql}
        return super().execute(sql, *parameters)


def test_few_different_statements_are_kept(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text(run.parent / "x.sqlite", run)
    with closing(sqlite3.connect(run.parent / "x.sqlite", factory=Recording, isolation_level=None)) as connection:
        first = 1000
        for count in range(1, 60):
            with write.writing(connection) as writer:
                writer.add(Text(row()._replace(id=first + n), f"w{n}", 1, 2) for n in range(count))
            first += count
        assert connection.execute("select count(*) from trajectories_text_docsize where id >= 1000").fetchone() == (
            1770,
        )
        assert len([sql for sql in connection.said if "into trajectories_text " in sql]) == 7


HALF = """
import threading
from itertools import count
from rltracer_sqlite.cli.fts import main
from rltracer_sqlite.search import ahead, shard_texts, write
ahead.BATCH_ROWS = write.COMMIT_BYTES = 1
write.STATEMENT_ROWS = 2
plain, asked, is_over = shard_texts.ShardTexts.read, count(), threading.Event()
class Pool(ahead.ThreadPoolExecutor):
    def shutdown(self, *arguments, **options):
        is_over.set()
        super().shutdown(*arguments, **options)
def until_half(*arguments):
    if next(asked) >= 10:
        is_over.wait()
    return plain(*arguments)
ahead.ThreadPoolExecutor, shard_texts.ShardTexts.read = Pool, until_half
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX systems")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_signal_ends_a_build_that_the_next_one_completes(number: signal.Signals, run: Path) -> None:
    database = run.parent / "x.sqlite"
    remember_root(run)
    with subprocess.Popen(
        [sys.executable, "-c", TAKE_INTERRUPTS + HALF, str(database), "--quiet"],
        cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        wait_for_texts(database)
        process.send_signal(number)
        printed = process.communicate(timeout=60)[0].decode()
    assert process.returncode == (-number if number is signal.SIGKILL else 128 + number)
    assert "Traceback" not in printed
    assert value(database, "pragma integrity_check") == "ok"
    before = value(database, "select count(*) from trajectories_text_digests")
    assert 0 < before < STEPS * EACH
    assert text(database, run).trajectories == STEPS * EACH - before
    each_is_found_once(database)


def wait_for_texts(database: Path) -> None:
    for _ in range(2000):
        with closing(open_index(database)) as connection:
            try:
                if connection.execute("select count(*) from trajectories_text_digests").fetchone()[0]:
                    return
            except sqlite3.OperationalError:
                pass  # not made yet
        time.sleep(0.02)
    raise AssertionError("no text was written")


def test_a_file_that_changes_is_read_again_and_the_others_are_not(run: Path) -> None:
    database = run.parent / "x.sqlite"
    text(database, run)
    write_step(run, [said(f"other{n}", id=f"2-{n}") for n in range(EACH)], 2)
    index(database, run)
    connection = open_for_writing(database)
    done = refresh_text(connection, Roots([run]), may_rebuild=False)
    finish_writing(connection)
    assert (done.changed, done.trajectories, done.rebuilt) == (EACH, 0, False)
    unread = "select path from shards where (id, size) not in (select shard_id, size from trajectories_text_shards)"
    assert rows(database, unread) == [("rollouts/step_2/train/all/traces.jsonl",)]
