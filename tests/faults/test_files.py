"""Files that fail, change or vanish while they are read: what was whole is kept, and the next run completes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.adapter import open_run
from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.index.refresh import refresh_run
from rltracer_sqlite.index.runs import ensure_run
from rltracer_sqlite.remembered_roots import remember_root
from rltracer_sqlite.sources import readers
from rltracer_sqlite.sources.base import LocatorError, Scanned
from rltracer_sqlite.sources.prime_rl import PrimeRLSource, scan
from tests.faults.runs import (
    RECORDS,
    called,
    content,
    file_of,
    names,
    reads_everything,
    record,
    sentence,
    write_run,
)
from tests.indexing import index, later, rows, value
from tests.layouts import append, seal


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


@pytest.fixture(autouse=True)
def small_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "COMMIT_RECORDS", 7)


def whole(tmp_path: Path, run: Path) -> list[Any]:
    """Return what an index of the run as it is now holds."""
    index(tmp_path / "whole.sqlite", run)
    found = content(tmp_path / "whole.sqlite")
    (tmp_path / "whole.sqlite").unlink()
    return found


class Disturbed(PrimeRLSource):
    """A source in whose reading something happens once, after so many findings."""

    def __init__(self, after: int, disturb: Callable[[], Any]) -> None:
        super().__init__()
        self.after, self.disturb = after, disturb

    def scan(self, *arguments: Any) -> Iterator[Scanned]:
        for found in super().scan(*arguments):
            yield found
            self.after -= 1
            if self.after == 0:
                self.disturb()


def index_disturbed(database: Path, run: Path, after: int, disturb: Callable[[], Any]) -> None:
    source, connection = Disturbed(after, disturb), open_for_writing(database)
    try:
        refresh_run(connection, source, run, ensure_run(connection, source, run))
    finally:
        finish_writing(connection)


@pytest.mark.parametrize("after", [0, 10_000, 70_000])
def test_a_read_error_keeps_what_was_read(
    run: Path, database: Path, tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many bytes of a file the disk gives an error, as a bad sector or a lost network share does."""
    monkeypatch.setattr("rltracer_sqlite.sources.lines.CHUNK_BYTES", 5_000)
    read_into = readers.PlainFile.read_into

    def failing(self: readers.PlainFile, target: memoryview, offset: int) -> int:
        if offset >= after and os.readlink(f"/proc/self/fd/{self.descriptor}").endswith(
            "step_2/train/all/traces.jsonl"
        ):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read_into(self, target, offset)

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to know the file behind a descriptor")
    with monkeypatch.context() as patch:
        patch.setattr(readers.PlainFile, "read_into", failing)
        index(database, run)
    assert value(database, "select count(*) from trajectories where step <> 2") == 2 * RECORDS
    told = "select reason from problems p join shards s on s.id = p.shard_id where s.step = 2 and s.state = 'unread'"
    assert "Input/output error" in value(database, told)
    index(database, run)
    assert content(database) == whole(tmp_path, run)
    assert value(database, "select count(*) from problems") == 0


def test_a_read_error_ends_an_export_without_a_file(
    run: Path, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rltracer_sqlite.export import ExportError, ExportPreferences, TraceDataExporter, TraceRunSpec

    index(database, run)
    remember_root(run)
    exporter = TraceDataExporter([TraceRunSpec.from_index(database)], ExportPreferences(acceptance="any"))

    def failing(self: readers.PlainFile, length: int, offset: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(readers.PlainFile, "pread", failing)
        with pytest.raises((ExportError, LocatorError), match="Input/output error"):
            exporter.write(tmp_path / "out.jsonl")
        with pytest.raises(LocatorError, match="Input/output error"):
            open_run(database).load_trajectory(1)
    assert names(tmp_path) == ["run", "x.sqlite"]
    assert exporter.write(tmp_path / "out.jsonl").selected_count


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("after", [1, 9, 30])
def test_a_file_that_is_rewritten_while_it_is_read(
    run: Path, database: Path, tmp_path: Path, after: int, in_place: bool
) -> None:
    file = file_of(run, 1)
    append(tmp_path / "other.jsonl", *(record(1, number, "another answer") for number in range(20, 70)))

    def rewrite() -> None:
        if in_place:
            file.write_bytes((tmp_path / "other.jsonl").read_bytes())
        else:
            (tmp_path / "other.jsonl").rename(file)
        later(file)

    index_disturbed(database, run, after, rewrite)
    content(database)
    index(database, run)
    assert content(database) == whole(tmp_path, run)


@pytest.mark.parametrize("after", [1, 9, 30])
@pytest.mark.parametrize("keep", [0, 5, 5.5])
def test_a_file_that_is_truncated_while_it_is_read(
    run: Path, database: Path, tmp_path: Path, after: int, keep: float
) -> None:
    file = file_of(run, 1)
    size = file.stat().st_size

    def truncate() -> None:
        os.truncate(file, int(size * keep / RECORDS))
        later(file)

    index_disturbed(database, run, after, truncate)
    content(database)
    index(database, run)
    assert content(database) == whole(tmp_path, run)


@pytest.mark.parametrize("after", [1, 9, 30, 60])
def test_a_file_that_vanishes_while_it_is_read(run: Path, database: Path, after: int) -> None:
    moved = run.parent / "moved.jsonl"
    index_disturbed(database, run, after, lambda: file_of(run, 1).rename(moved))
    content(database)
    moved.rename(file_of(run, 1))
    index(database, run)
    assert content(database) == whole(run.parent, run)


def test_a_chunk_that_is_sealed_while_it_is_read(run: Path, database: Path, tmp_path: Path) -> None:
    before = whole(tmp_path, run)
    index_disturbed(database, run, 9, lambda: seal(file_of(run, 1), 3000))
    index(database, run)
    assert content(database) == before


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("after", [1, 9, 30])
def test_a_file_that_may_not_be_read_any_more(run: Path, database: Path, tmp_path: Path, after: int, step: int) -> None:
    if reads_everything(tmp_path):
        pytest.skip("this user may read everything")
    file = file_of(run, step)
    index_disturbed(database, run, after, lambda: file.chmod(0))
    content(database)
    append(file_of(run, 3), record(3, 77))
    index(database, run)
    closed = "select reason from problems p join shards s on s.id = p.shard_id where s.state = 'unread'"
    # The file that was open when its permissions went is read to its end; one that comes later cannot be opened.
    assert [reason for (reason,) in rows(database, closed)] == (
        [] if step == 1 else [f"{file_of(Path(), 2)} cannot be opened: Permission denied."]
    )
    file.chmod(0o644)
    index(database, run)
    assert content(database) == whole(tmp_path, run)


def test_a_database_that_may_not_be_written_any_more(run: Path, tmp_path: Path) -> None:
    if reads_everything(tmp_path):
        pytest.skip("this user may write everything")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    index(folder / "x.sqlite", run)
    before = content(folder / "x.sqlite")
    append(file_of(run, 1), record(1, 77))
    folder.chmod(0o555)
    try:
        assert "Permission denied" in sentence(called("index", folder / "x.sqlite", run))
        assert content(folder / "x.sqlite") == before
    finally:
        folder.chmod(0o755)
    index(folder / "x.sqlite", run)
    assert content(folder / "x.sqlite") == whole(tmp_path, run)


def test_a_folder_in_the_place_of_a_file_and_back(run: Path, database: Path, tmp_path: Path) -> None:
    index(database, run)
    before = content(database)
    file = file_of(run, 1)
    file.rename(tmp_path / "aside")
    file.mkdir()
    index(database, run)
    assert value(database, "select count(*) from trajectories") == 3 * RECORDS
    file.rmdir()
    (tmp_path / "aside").rename(file)
    index(database, run)
    assert content(database) == before


@pytest.mark.parametrize("seconds", [4_102_444_800, 0])
def test_a_clock_that_jumps(run: Path, database: Path, tmp_path: Path, seconds: int) -> None:
    """Times of files in 2100 and in 1970: only that they differ is looked at."""
    index(database, run)
    append(file_of(run, 1), record(1, 77))
    os.utime(file_of(run, 1), (seconds, seconds))
    os.utime(file_of(run, 2), (seconds, seconds))
    index(database, run)
    assert content(database) == whole(tmp_path, run)
    append(file_of(run, 1), record(1, 78))
    os.utime(file_of(run, 1), (seconds, seconds))
    index(database, run)
    assert content(database) == whole(tmp_path, run)


def test_other_content_of_the_same_size_and_time_is_noticed_when_it_is_read(run: Path, database: Path) -> None:
    """What costs a stat cannot see such a change. Reading the record does, and --rebuild reads it again."""
    index(database, run)
    remember_root(run)
    file, before = file_of(run, 1), file_of(run, 1).stat()
    file.write_bytes(file.read_bytes().replace(b'"1-0"', b'"9-9"'))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    index(database, run)
    identity = value(database, "select id from trajectories where uid = '1-0'")
    with pytest.raises(LocatorError, match="has changed since it was indexed"):
        open_run(database).load_trajectory(identity)
    assert called("index", database, run, "--rebuild", "--quiet").returncode == 0
    assert value(database, "select count(*) from trajectories where uid = '9-9'") == 1


def test_a_home_that_cannot_be_written(run: Path, tmp_path: Path) -> None:
    """A file in the place of the folder is what root cannot write to either."""
    home = tmp_path / "home"
    home.write_text("no folder")
    (tmp_path / "elsewhere").mkdir()
    database = tmp_path / "elsewhere" / "x.sqlite"
    done = called("index", database, run, RLTRACER_HOME=str(home))
    assert (done.returncode, done.stderr.startswith("Note: the list of roots cannot be written")) == (0, True)
    shown = called("rltracer", "inspect", database, "--trajectory", "1", RLTRACER_HOME=str(home))
    assert "which is not among the folders that may be read here" in sentence(shown)
    cached = called(
        "rltracer", "inspect", "--run", run, "--step", "1", RLTRACER_HOME=str(home), XDG_CACHE_HOME=str(home)
    )
    assert "cannot be used" in sentence(cached)
    assert home.read_text() == "no folder"
