"""Runs behind s3:// against a real S3 server: each byte is read once, and a trajectory is one request."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rltracer_sqlite import IndexedAdapter, PrimeRLAdapter, RLTracer
from rltracer_sqlite.adapter import load_trajectory, open_run
from rltracer_sqlite.cli import group
from rltracer_sqlite.index import parts
from rltracer_sqlite.index.database import open_index
from rltracer_sqlite.index.followed import Followed
from rltracer_sqlite.index.plan import Job
from rltracer_sqlite.index.watch import Watch
from rltracer_sqlite.roots import RootNotAllowed, Roots, remember_root, remembered_roots
from rltracer_sqlite.sources import remote_file, remote_requests, source_for
from rltracer_sqlite.sources.base import START, Entry, LocatorError, SourceError
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.remote import RemoteRoot
from tests.indexing import index, rows, value
from tests.layouts import line, message, seal, trace
from tests.s3_server import Fault, Respond, S3Server, refusing

ALL = "step_1/train/all/traces.jsonl"
ROOT = "s3://runs/my-run"
PIECE = 64 << 10


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def s3(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """A bucket that is empty, and reading in small pieces with short pauses."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    for name, text in {"ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "hush-hush", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", text)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name, size in {"FIRST": 4 << 10, "SMALL": 8 << 10, "END": 4 << 10, "LARGEST": PIECE}.items():
        monkeypatch.setattr(remote_file, name, size)
    monkeypatch.setattr(remote_requests, "PAUSE", 0.01)
    server.reset()
    return server


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "x.sqlite"


def record(number: int, answer: str) -> dict[str, Any]:
    messages = [message("user", "6 * 7?"), message("assistant", answer)]
    return trace(id=f"t{number}", messages=messages, rewards={"r": 1.0})


def lines(numbers: Iterable[int], answer: str = "42") -> bytes:
    return b"".join(line(record(number, answer)) for number in numbers)


def refresh(database: Path) -> Any:
    return index(database, RemoteRoot(ROOT))


def asked_bytes(s3: S3Server) -> int:
    return sum(request.bytes for request in s3.asked("GET"))


def count(database: Path) -> int:
    return int(value(database, "select count(*) from trajectories where gone = 0"))


def problems(database: Path) -> list[str]:
    return [reason for (reason,) in rows(database, "select reason from problems")]


def test_each_byte_is_read_once_in_growing_pieces(s3: S3Server, database: Path) -> None:
    data = lines(range(600), "x" * 1000)
    s3.put(f"my-run/{ALL}", data)
    done = refresh(database)
    assert (count(database), done.read_bytes) == (600, len(data))
    assert asked_bytes(s3) == len(data)
    assert len(s3.asked("GET")) <= 3 + len(data) / PIECE
    assert [request.method for request in s3.asked("LIST", "HEAD")] == ["LIST"]


def test_the_parts_of_a_file_are_read_about_once(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    data = lines(range(2000), "x" * 1000)
    s3.put(f"my-run/{ALL}", data)
    monkeypatch.setattr(parts, "PART_BYTES", 256 << 10)
    root = RemoteRoot(ROOT)
    source = source_for(root)
    [shard] = source.shards(root)
    planned = parts.Parts(source, root, [Job(shard, 1, START, len(data), 0, again=False)])
    found = [one for part in planned for batch in parts.scan_part(source, RemoteRoot(ROOT), part) for one in batch]
    assert sum(isinstance(one, Entry) for one in found) == 2000
    assert len(data) <= asked_bytes(s3) <= len(data) * 1.1


def test_files_are_listed_by_the_thousand_and_small_ones_read_at_once(s3: S3Server, database: Path) -> None:
    for step in range(1, 21):
        s3.put(f"my-run/step_{step}/train/all/traces.jsonl", lines([step]))
    s3.put("my-run-2/step_1/train/all/traces.jsonl", lines([99]))
    refresh(database)
    assert (count(database), len(s3.asked("LIST")), len(s3.asked("GET")), len(s3.asked("HEAD"))) == (20, 1, 20, 0)


def test_an_unchanged_run_is_listed_and_not_read(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    refresh(database)
    s3.requests.clear()
    assert refresh(database).read_shards == 0
    assert [request.method for request in s3.asked()] == ["LIST"]


def test_a_longer_object_is_read_from_where_it_grew(s3: S3Server, database: Path) -> None:
    old, new = lines(range(300), "x" * 1000), lines(range(300, 320))
    s3.put(f"my-run/{ALL}", old)
    refresh(database)
    ids = dict(rows(database, "select uid, id from trajectories"))
    s3.requests.clear()
    s3.put(f"my-run/{ALL}", old + new)
    assert refresh(database).read_bytes == len(new)
    assert asked_bytes(s3) == len(new) + 2 * 4096  # and the first and the last 4 KiB of what was known
    assert count(database) == 320
    assert ids.items() <= dict(rows(database, "select uid, id from trajectories")).items()


def test_an_object_of_the_same_size_and_second_is_told_by_its_etag(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5), "41"))
    refresh(database)
    s3.put(f"my-run/{ALL}", lines(range(5), "42"))
    assert refresh(database).read_shards == 1


def test_a_watch_lists_and_reads_what_is_new(s3: S3Server, database: Path) -> None:
    root = RemoteRoot(ROOT)
    s3.put(f"my-run/{ALL}", lines(range(5)))
    with Watch(database, [Followed(root, lambda: source_for(root))]) as watch:
        watch.look()
        s3.requests.clear()
        watch.look()
        assert [request.method for request in s3.asked()] == ["LIST"]
        s3.put(f"my-run/{ALL}", lines(range(8)))
        assert watch.look().read_bytes == len(lines(range(5, 8)))
        s3.delete(f"my-run/{ALL}")
        watch.look()
        assert "has vanished" in watch.runs[0].trouble
    assert count(database) == 8


def test_a_torn_line_waits_and_is_read_when_complete(s3: S3Server, database: Path) -> None:
    data = lines(range(3))
    s3.put(f"my-run/{ALL}", data[:-20])
    assert refresh(database).waiting == [ALL]
    s3.put(f"my-run/{ALL}", data)
    assert refresh(database).waiting == []
    assert count(database) == 3


def test_a_trajectory_is_one_ranged_read(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(300), "x" * 1000))
    refresh(database)
    [(offset, length)] = rows(database, "select byte_offset, byte_length from trajectories where uid = 't150'")
    s3.requests.clear()
    connection = open_index(database)
    loaded = load_trajectory(connection, 151, Roots([RemoteRoot(ROOT)]))
    connection.close()
    assert (loaded.metadata["id"], loaded.messages[-1]["content"]) == (151, "x" * 1000)
    [request] = s3.asked()
    assert (request.range, request.bytes) == (f"bytes={offset}-{offset + length - 1}", length)


def test_a_sealed_chunk_is_read_frame_by_frame(s3: S3Server, database: Path, tmp_path: Path) -> None:
    chunk = tmp_path / "run" / "traces/stream/00001.jsonl"
    chunk.parent.mkdir(parents=True)
    chunk.write_bytes(b"".join(line(record(number, os.urandom(500).hex())) for number in range(400)))
    sealed = seal(chunk, 100_000)
    s3.upload(tmp_path / "run", "my-run")
    refresh(database)
    assert count(database) == 400
    assert asked_bytes(s3) <= sealed.stat().st_size + remote_file.END
    s3.requests.clear()
    open_run_here(database).load_trajectory(200)
    assert asked_bytes(s3) < 250_000
    assert len(s3.asked("GET")) <= 4


def open_run_here(database: Path) -> IndexedAdapter:
    return IndexedAdapter(source_for(RemoteRoot(ROOT)), ROOT, database, refresh=False)


def test_zstd_without_a_seek_table_is_fetched_once(s3: S3Server, database: Path, tmp_path: Path) -> None:
    import zstandard

    data = b"".join(line(record(number, os.urandom(500).hex())) for number in range(400))
    packed = zstandard.ZstdCompressor().compress(data)
    s3.put(f"my-run/{ALL}.zst", packed)
    refresh(database)
    assert count(database) == 400
    assert len(packed) <= asked_bytes(s3) <= len(packed) + remote_file.END  # the end is looked at for a seek table


def test_what_vanishes_is_kept_and_flagged(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    s3.put("my-run/step_2/train/all/traces.jsonl", lines(range(5, 8)))
    refresh(database)
    s3.delete(f"my-run/{ALL}")
    assert refresh(database).gone == [ALL]
    assert (count(database), value(database, "select count(*) from trajectories")) == (3, 8)


def truncating(times: int = 1_000_000) -> Fault:
    """Return a fault that breaks off the answer to a GET in the middle, so many times."""
    left = [times]

    def fault(environ: dict[str, Any], respond: Respond) -> Iterable[bytes] | None:
        if environ["REQUEST_METHOD"] != "GET" or "HTTP_RANGE" not in environ or not left[0]:
            return None
        left[0] -= 1
        first, last = map(int, environ["HTTP_RANGE"].removeprefix("bytes=").split("-"))
        respond("206 Partial Content", [("Content-Length", str(last - first + 1)), ("Connection", "close")])
        return [b"x" * ((last - first) // 2)]

    return fault


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (refusing("403 AccessDenied"), "access is denied"),
        (refusing("404 NoSuchKey"), "is not there any more"),
        (refusing("404 NoSuchBucket"), "is not there any more"),
        (refusing("500 InternalError"), "refused"),
        (truncating(), "cannot be read"),
    ],
    ids=["403", "404", "bucket", "500", "truncated"],
)
def test_a_file_that_cannot_be_read_stays_unread_until_it_can(
    s3: S3Server, database: Path, fault: Fault, sentence: str
) -> None:
    s3.put("my-run/step_1/train/all/traces.jsonl", lines(range(5)))
    refresh(database)
    s3.put("my-run/step_2/train/all/traces.jsonl", lines(range(5, 300), "x" * 1000))
    s3.requests.clear()
    with s3.failing(fault):
        refresh(database)
    assert len(s3.asked("GET")) < 40
    assert rows(database, "select state from shards order by path") == [("complete",), ("unread",)]
    [problem] = problems(database)
    assert sentence in problem
    assert "hush" not in problem
    assert "\n" not in problem
    refresh(database)
    assert (count(database), problems(database)) == (300, [])


def test_a_fault_in_the_middle_keeps_the_index_consistent(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(300), "x" * 1000))

    def fault(environ: dict[str, Any], respond: Respond) -> Iterable[bytes] | None:
        return refusing("403 AccessDenied")(environ, respond) if len(s3.asked("GET")) > 3 else None

    with s3.failing(fault):
        refresh(database)
    assert value(database, "select state from shards") == "unread"
    refresh(database)
    assert (count(database), value(database, "select count(distinct uid) from trajectories")) == (300, 300)


@pytest.mark.parametrize("fault", [refusing("503 SlowDown", times=1), truncating(1)], ids=["503", "truncated"])
def test_a_fault_that_passes_is_not_noticed(s3: S3Server, database: Path, fault: Fault) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    with s3.failing(fault):
        refresh(database)
    assert (count(database), problems(database)) == (5, [])


def test_a_server_that_does_not_answer_is_given_up(
    s3: S3Server, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threading import Event

    s3.put(f"my-run/{ALL}", lines(range(5)))
    monkeypatch.setattr("rltracer_sqlite.sources.remote.TIMEOUT", 0.1)
    woken = Event()

    def fault(environ: dict[str, Any], respond: Respond) -> Iterable[bytes] | None:
        if "list-type" not in environ["QUERY_STRING"]:
            woken.wait(10)
        return None

    with s3.failing(fault):
        refresh(database)
        woken.set()
    assert "there was no answer in time" in problems(database)[0]


def test_a_server_that_is_gone_is_not_asked_for_every_file(s3: S3Server, database: Path) -> None:
    for step in range(1, 9):
        s3.put(f"my-run/step_{step}/train/all/traces.jsonl", lines([step]))
    with s3.failing(refusing("500 InternalError")):
        refresh(database)
    assert len(s3.asked("GET")) == 3 * remote_requests.ATTEMPTS
    assert value(database, "select count(*) from shards where state = 'unread'") == 8
    assert refresh(database).read_shards == 8
    assert count(database) == 8


def test_a_place_that_cannot_be_listed_changes_nothing(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    refresh(database)

    def fault(environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        respond("403 AccessDenied", [])
        return [b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"]

    with s3.failing(fault), pytest.raises(SourceError, match="s3://runs/my-run cannot be read: access is denied"):
        refresh(database)
    s3.delete(f"my-run/{ALL}")
    s3.delete("")
    with pytest.raises(SourceError, match="does not exist"):
        refresh(database)
    assert count(database) == 5
    with pytest.raises(LocatorError, match="not there any more"):
        open_run_of(database).load_trajectory(1)


def open_run_of(database: Path) -> IndexedAdapter:
    from rltracer_sqlite.sources.prime_rl import PrimeRLSource

    return IndexedAdapter(PrimeRLSource(), ROOT, database, refresh=False)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


def test_the_commands_take_a_url(s3: S3Server, database: Path, tmp_path: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    indexed = run("index", database, ROOT, "--success", "reward>=1", "--fts")
    assert "my-run: 5 trajectories" in indexed.output
    assert "5 of 5 trajectories" in indexed.output
    assert str(remembered_roots()[0]) == ROOT
    assert "6 * 7?" in run("inspect", "--run", ROOT, "--step", "1").output
    assert "6 * 7?" in run("inspect", "--run", database, "--step", "1").output
    for place in (database, ROOT):
        out = tmp_path / "out.jsonl"
        assert run("export", place, "-o", out, "--acceptance", "any", "--per-prompt", "all").exit_code == 0
        assert len(out.read_text().splitlines()) == 5
    assert run("analyze", ROOT, "-o", tmp_path / "analysis").exit_code == 0
    assert "not on this machine" in run("serve", "--run", ROOT).output
    assert b"hush" not in database.read_bytes()
    assert run("roots", "remove", ROOT).exit_code == 0
    assert "not among the folders" in str(run("inspect", "--run", database, "--trajectory", "1").exception)


def test_a_password_in_a_url_is_a_wrong_argument(s3: S3Server, database: Path) -> None:
    result = run("index", database, "s3://key:hush@runs/my-run")
    assert (result.exit_code, "hush" in result.output, database.exists()) == (2, False, False)
    assert "names a user or a password" in " ".join(result.output.split())
    assert s3.asked() == []


def test_python_reads_a_url(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    remember_root(RemoteRoot(ROOT))
    tracer = RLTracer(PrimeRLAdapter(rollout_dir=ROOT, index_path=database))
    assert len(tracer.steps()) == 1
    [group] = tracer.step(1).prompts()
    assert group.trajectory(0).load().messages[-1]["content"] == "42"
    s3.put("my-run/step_2/train/all/traces.jsonl", lines(range(5, 8)))
    assert len(tracer.step(2).prompts()[0]) == 3
    assert [len(step.prompts()[0]) for step in RLTracer(ROOT).steps()] == [5, 3]
    assert [len(step.prompts()[0]) for step in RLTracer(database).steps()] == [5, 3]


def test_a_page_reads_urls_that_were_allowed_only(s3: S3Server, database: Path) -> None:
    datasette = pytest.importorskip("datasette.app").Datasette
    s3.put(f"my-run/{ALL}", lines(range(5), "forty-two"))
    refresh(database)  # the library alone remembers no root; the command does

    async def page(config: dict[str, Any]) -> str:
        served = datasette([str(database)], metadata={"plugins": {"datasette-rltracer": config}})
        await served.invoke_startup()
        return str((await served.client.get("/-/rltracer/x/trajectory/1")).text)

    s3.requests.clear()
    assert "not among the folders" in asyncio.run(page({}))
    assert s3.asked() == []
    assert "forty-two" in asyncio.run(page({"roots": ["s3://runs"]}))
    assert len(s3.asked()) == 1


def test_another_index_of_somebody_leads_nowhere(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    refresh(database)
    with pytest.raises(RootNotAllowed, match="rltracer roots add 's3://runs/my-run'"):
        open_run(database)


def test_a_record_is_checked_against_what_was_indexed(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    refresh(database)
    s3.put(f"my-run/{ALL}", lines(reversed(range(5))))
    with pytest.raises(LocatorError, match="has changed since it was indexed"):
        open_run_of(database).load_trajectory(1)
    with open_shard(RemoteRoot(ROOT), ALL) as reader:
        assert json.loads(reader.pread(10_000, 0).split(b"\n")[0])["id"] == "t4"
