"""Runs behind a URL, in a file system in memory: the same index as from a folder, and what a URL may be."""

from __future__ import annotations

import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltracer_sqlite.roots import RootNotAllowed, Roots, forget_root, remember_root, remembered_roots, roots_file
from rltracer_sqlite.sources import remote_file, source_for
from rltracer_sqlite.sources.base import LocatorError, SourceError
from rltracer_sqlite.sources.files import open_shard, read_bytes
from rltracer_sqlite.sources.places import place, walk
from rltracer_sqlite.sources.remote import NotLocal, RemoteRoot
from rltracer_sqlite.sources.remote_listing import status_of
from rltracer_sqlite.sources.remote_requests import PACKAGES, canonical, redacted
from tests.indexing import index, rows, value
from tests.layouts import LAYOUTS, append, line, message, trace
from tests.table_samples import SAMPLES
from tests.test_table_workflow import write_workflow
from tests.token_layouts import micro_batch, question, write_bin, write_torch

TABLES = ("runs", "steps", "shards", "prompts", "prompt_groups", "trajectories", "annotations", "fields", "problems")
TALK = trace(id="t1", messages=[message("user", "6 * 7?"), message("assistant", "42")])
OF_THE_PLACE = {"root", "name", "mtime_ns", "created_at", "indexed_at"}


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A file system that every process has, offered as one of those that runs are read from."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    monkeypatch.setitem(PACKAGES, "memory", "fsspec")
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


def upload(system: Any, folder: Path, name: str = "run") -> RemoteRoot:
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        system.pipe_file(f"/{name}/{file.relative_to(folder).as_posix()}", file.read_bytes())
    return RemoteRoot(f"memory://{name}")


def content(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return what an index holds, apart from where and when."""
    found = {}
    connection = sqlite3.connect(database)
    for table in TABLES:
        cursor = connection.execute(f"select * from {table} order by 1")
        names = [column[0] for column in cursor.description]
        kept = [number for number, name in enumerate(names) if name not in OF_THE_PLACE]
        found[table] = [tuple(row[number] for number in kept) for row in cursor]
    connection.close()
    return found


def write_tokens(folder: Path) -> None:
    write_bin(folder / "step_1" / "rank_0.bin", [micro_batch("g20", [question(), question("5")])])
    write_torch(folder / "step_2" / "rank_0.pt", [[question()], [question("5")]])


READ_HERE = ("j0-06-01", "j2", "j3", "v1b", "verl", "trl-text", "nemo-rl")
WRITERS: dict[str, Callable[[Path], Any]] = {
    **{name: LAYOUTS[name] if name in LAYOUTS else SAMPLES[name][1] for name in READ_HERE},
    "tokens": write_tokens,
    "workflow": write_workflow,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_remote_run_gives_the_index_of_a_local_one(memory: Any, tmp_path: Path, name: str) -> None:
    if name == "trl-text":
        pytest.importorskip("pyarrow")
    folder = tmp_path / "run"
    folder.mkdir()
    WRITERS[name](folder)
    root = upload(memory, folder)
    for database, run in (("local", folder), ("remote", root)):
        index(tmp_path / database, run)
    assert content(tmp_path / "remote") == content(tmp_path / "local")
    assert value(tmp_path / "remote", "select count(*) from trajectories") > 0


DATA = os.urandom(5000)
PLACES = st.lists(st.tuples(st.booleans(), st.integers(0, 5200), st.integers(1, 1500)), max_size=12)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PLACES, st.integers(1, 300), st.integers(300, 900), st.integers(0, 5000))
def test_any_order_of_reading_gives_the_bytes(
    memory: Any, places: list[tuple[bool, int, int]], first: int, largest: int, stop: int
) -> None:
    memory.pipe_file("/run/a.bin", DATA)
    with pytest.MonkeyPatch.context() as patch:
        for name, size in {"FIRST": first, "SMALL": 200, "END": 100, "LARGEST": largest, "HELD_BYTES": 2000}.items():
            patch.setattr(remote_file, name, size)
        with open_shard(RemoteRoot("memory://run"), "a.bin") as reader:
            reader.told_to_stop(stop)  # type: ignore[attr-defined]
            at = 0
            for exactly, offset, length in places:
                assert reader.pread(length, offset) == DATA[offset : offset + length]
                buffer = bytearray(length)
                count = reader.read_into(memoryview(buffer), at if exactly else offset)
                at = at if exactly else offset
                assert buffer[:count] == DATA[at : at + count]
                assert count or at >= len(DATA)
                at += count
            memory.store.clear()


def test_one_file_is_a_run_too(memory: Any, tmp_path: Path) -> None:
    memory.pipe_file("/runs/a.jsonl", line(TALK))
    index(tmp_path / "x.sqlite", RemoteRoot("memory://runs/a.jsonl"))
    assert rows(tmp_path / "x.sqlite", "select r.name, s.path from runs r join shards s on s.run_id = r.id") == [
        ("a.jsonl", "a.jsonl")
    ]
    assert read_bytes(RemoteRoot("memory://runs/a.jsonl"), "a.jsonl", 0, 5) == line(TALK)[:5]


def test_a_walk_passes_over_the_same_folders(memory: Any, tmp_path: Path) -> None:
    for path in ("a/x.jsonl", "weights/w.jsonl", ".git/c.jsonl", "a/.hidden", "a.b/y.jsonl"):
        append(tmp_path / "run" / path, {})
    root = upload(memory, tmp_path / "run")
    memory.pipe_file("/run-2/other.jsonl", b"{}")
    skipped = frozenset({"weights"})
    assert {found.path for found in walk(root, skipped)} == {found.path for found in walk(tmp_path / "run", skipped)}


@pytest.mark.threat("T8")
@pytest.mark.parametrize("path", ["../run-2/a.jsonl", "/run-2/a.jsonl", "a/../../run-2/a.jsonl", "", ".", "a\0b", 5])
def test_a_path_of_an_index_leads_nowhere_else(memory: Any, path: Any) -> None:
    memory.pipe_file("/run/a.jsonl", b"{}")
    memory.pipe_file("/run-2/a.jsonl", b"secret")
    for root in (RemoteRoot("memory://run"), RemoteRoot("memory://run/a.jsonl")):
        with pytest.raises(LocatorError), open_shard(root, path):
            pass
        with pytest.raises(LocatorError):
            read_bytes(root, path, 0, 2)


def test_a_record_that_is_not_there_is_said_to_be(memory: Any) -> None:
    memory.pipe_file("/run/a.jsonl", b"0123456789")
    root = RemoteRoot("memory://run")
    assert read_bytes(root, "a.jsonl", 2, 3) == b"234"
    for offset, length, what in (
        (8, 5, "ends before byte 13"),
        (500, 5, "ends before byte 505"),
        (-1, 5, "out of range"),
    ):
        with pytest.raises(LocatorError, match=what):
            read_bytes(root, "a.jsonl", offset, length)
    with pytest.raises(LocatorError, match="not there any more"):
        read_bytes(root, "b.jsonl", 0, 1)


def test_a_table_in_a_remote_database_is_refused_in_a_sentence(memory: Any, tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "t.db").execute("create table t (a)").connection.close()
    memory.pipe_file("/run/t.db", (tmp_path / "t.db").read_bytes())
    with pytest.raises(SourceError, match="SQLite database, which is read on this machine only"):
        source_for(RemoteRoot("memory://run"))


class LocalSource:
    """A source that somebody wrote for folders of this machine."""

    name = "local"

    def recognises(self, root: Path) -> bool:
        return any(root.rglob("*.jsonl"))


@pytest.mark.parametrize("use", [os.listdir, open, lambda root: root / "a", lambda root: list(root.iterdir()), Path])
def test_a_source_of_local_files_gets_a_sentence(use: Callable[[Any], Any]) -> None:
    with pytest.raises(NotLocal, match="not on this machine"):
        use(RemoteRoot("s3://runs/a"))
    with pytest.raises(NotLocal):
        LocalSource().recognises(RemoteRoot("s3://runs/a"))  # type: ignore[arg-type]


def test_other_sources_are_asked_after_one_for_local_files(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/run/a.txt", b"{}")
    monkeypatch.setattr(
        "rltracer_sqlite.sources._references", lambda: [("local", "tests.remote.test_urls:LocalSource")]
    )
    monkeypatch.setattr("rltracer_sqlite.sources._load", lambda *_: LocalSource())
    with pytest.raises(SourceError, match=r"no rollouts of a known format\. It holds: a\.txt"):
        source_for(RemoteRoot("memory://run"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://bucket/run", "s3://bucket/run"), ("S3://bucket//run/", "s3://bucket/run"), ("s3://b", "s3://b"),
        ("hf://datasets/me/data@main/run", "hf://datasets/me/data@main/run"), ("ssh://host:22/data", "ssh://host:22/data"),
        ("s3://bucket/a run/ü", "s3://bucket/a run/ü"),
    ],
)  # fmt: skip
def test_a_url_is_written_in_one_way(text: str, expected: str) -> None:
    root = place(text)
    assert str(root) == str(pickle.loads(pickle.dumps(root))) == expected


@pytest.mark.threat("T8")
@pytest.mark.parametrize(
    "text",
    [
        "file:///etc", "http://host/run", "simplecache::s3://bucket/run", "s3://bucket/a::b", "github://a:b@/x",
        "s3://key:hush@bucket/run", "ssh://me@host/run", "s3://bucket/../x", "s3://bucket/./x", "s3:///run", "s3://",
        "s3://bucket/run?versionId=hush", "s3://bucket/run#x", "s3://bucket/a\nb", "s3://bucket/a\\b",
        "s3://b/" + "x" * 3000,
    ],
)  # fmt: skip
def test_a_url_that_is_not_read_is_refused_without_repeating_a_secret(text: str) -> None:
    with pytest.raises(SourceError) as refused:
        canonical(text)
    assert "hush" not in str(refused.value)


def test_a_message_from_a_network_keeps_no_secret() -> None:
    text = "cannot reach http://me:hush@host:9000/b?X-Amz-Signature=hush2&x=1 'http://h/a?t=hush3' now"
    assert redacted(text) == "cannot reach http://…@host:9000/b?… 'http://h/a?…' now"


@pytest.mark.threat("T8")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://bucket/run", True), ("s3://bucket/run/step_1", True), ("S3://bucket//run", True),
        ("s3://bucket/run-2", False), ("s3://bucket", False), ("s3://other/run", False), ("gs://bucket/run", False),
        ("s3://bucket/run/../other", False), ("file:///etc", False), ("s3://k:hush@bucket/run", False),
        ("http://h", False),
    ],
)  # fmt: skip
def test_an_index_leads_to_urls_that_were_allowed_only(tmp_path: Path, url: str, expected: bool) -> None:
    remember_root(RemoteRoot("s3://bucket/run"))
    for roots in (Roots.for_database(tmp_path / "x.sqlite"), Roots.for_database(None, ["s3://bucket/run", "/data"])):
        if expected:
            assert str(roots.check(url)).startswith("s3://bucket/run")
        else:
            with pytest.raises(RootNotAllowed) as refused:
                roots.check(url)
            assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("info", "status"),
    [
        ({"size": 3, "mtime": 5.5}, (3, 5_500_000_000)),
        ({"size": 3, "LastModified": datetime(1970, 1, 1, 0, 0, 7, tzinfo=timezone.utc)}, (3, 7_000_000_000)),
        ({"size": 3, "updated": "1970-01-01T00:00:07.000Z"}, (3, 7_000_000_000)),
        ({"size": 3}, (3, 0)),
        ({"size": 1 << 80, "mtime": 1e30}, (1 << 62, 1 << 62)),
        ({"size": -5, "mtime": -1, "updated": "soon"}, (0, 0)),
        ({"type": "link", "size": 9}, (-1, 0)),
    ],
)
def test_what_a_server_says_of_a_file(info: dict[str, Any], status: tuple[int, int]) -> None:
    assert status_of(info) == status


def test_an_etag_tells_two_versions_of_a_second_apart() -> None:
    times = {status_of({"size": 1, "mtime": 7, "ETag": etag})[1] for etag in ("a", "b")}
    assert len(times) == 2
    assert {time // 1_000_000_000 for time in times} == {7}


@pytest.mark.parametrize("configured", ["/data", ["http://host"], ["s3://key:hush@bucket"], [5], [None], []])
def test_a_wrong_configuration_allows_nothing(configured: Any, tmp_path: Path) -> None:
    roots = Roots.for_database(tmp_path / "x.sqlite", configured)
    for url in (tmp_path, "http://host", "s3://bucket/run", "/etc"):
        with pytest.raises(RootNotAllowed):
            roots.check(url)


def test_a_url_is_remembered_once_and_forgotten(tmp_path: Path) -> None:
    for root in (RemoteRoot("s3://bucket/run/"), RemoteRoot("s3://bucket/run"), tmp_path):
        remember_root(root)
    with roots_file().open("a") as file:
        file.write("http://not-read\n")
    assert remembered_roots() == [RemoteRoot("s3://bucket/run"), tmp_path]
    assert forget_root(RemoteRoot("s3://bucket/run"))
    assert remembered_roots() == [tmp_path]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(SourceError, match=r"pip install 'datasette-rltracer\[remote\]'"):
        RemoteRoot("s3://bucket/run").exists()


def test_a_url_that_was_made_a_path_is_pointed_out() -> None:
    with pytest.raises(SourceError, match="A URL is given as text"):
        source_for(Path("s3://bucket/run"))


def test_local_runs_import_no_network(tmp_path: Path) -> None:
    append(tmp_path / "run" / "step_1/train/all/traces.jsonl", TALK)
    code = (
        "import sys; from rltracer_sqlite.cli import main\n"
        f"sys.argv[1:] = ['index', {str(tmp_path / 'x.sqlite')!r}, {str(tmp_path / 'run')!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"from rltracer_sqlite import open_run; open_run({str(tmp_path / 'x.sqlite')!r}).load_trajectory(1)\n"
        "print([name for name in ('fsspec', 's3fs', 'asyncio') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"
