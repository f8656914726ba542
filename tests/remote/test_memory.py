"""Runs in a file system in memory, behind a URL: the same index as from a folder, and the same bytes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltracer_sqlite.sources import remote_file, source_for
from rltracer_sqlite.sources.base import LocatorError, SourceError
from rltracer_sqlite.sources.files import open_shard, read_bytes
from rltracer_sqlite.sources.places import walk
from rltracer_sqlite.sources.remote import NotLocal, RemoteRoot
from rltracer_sqlite.sources.remote_requests import PACKAGES
from tests.indexing import index, rows, value
from tests.layouts import LAYOUTS, append, line, message, trace
from tests.table_conversations import write_workflow
from tests.table_samples import SAMPLES
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
    monkeypatch.setattr("rltracer_sqlite.sources.references", lambda: [("local", "tests.remote.test_urls:LocalSource")])
    monkeypatch.setattr("rltracer_sqlite.sources._load", lambda *_: LocalSource())
    with pytest.raises(SourceError, match=r"no rollouts of a known format\. It holds: a\.txt"):
        source_for(RemoteRoot("memory://run"))
