"""Reading a run behind s3://: each byte is read once, and a trajectory is one request."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rltracer_sqlite import IndexedAdapter
from rltracer_sqlite.index import parts
from rltracer_sqlite.index.database import open_index
from rltracer_sqlite.index.followed import Followed
from rltracer_sqlite.index.plan import Job
from rltracer_sqlite.index.watch import Watch
from rltracer_sqlite.loading import load_trajectory
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.sources import remote_file, source_for
from rltracer_sqlite.sources.base import START, Entry
from rltracer_sqlite.sources.remote import RemoteRoot
from tests.indexing import rows
from tests.layouts import line, seal
from tests.remote.conftest import PIECE
from tests.remote.s3_runs import ALL, ROOT, asked_bytes, count, lines, record, refresh
from tests.remote.s3_server import S3Server


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
    assert rows(database, "select count(*), sum(gone) from trajectories") == [(8, 8)]


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


def test_zstd_without_a_seek_table_is_fetched_once(s3: S3Server, database: Path) -> None:
    import zstandard

    data = b"".join(line(record(number, os.urandom(500).hex())) for number in range(400))
    packed = zstandard.ZstdCompressor().compress(data)
    s3.put(f"my-run/{ALL}.zst", packed)
    refresh(database)
    assert count(database) == 400
    assert len(packed) <= asked_bytes(s3) <= len(packed) + remote_file.END  # the end is looked at for a seek table
