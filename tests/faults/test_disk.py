"""A disk that is full or read-only: a sentence, nothing lost, nothing half written, and a second run that completes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.runs import called, content, file_limit, mounted, names, remounted_read_only, sentence, write_run
from tests.indexing import index, value

pytestmark = [
    pytest.mark.usefixtures("trusted"),
    pytest.mark.skipif(os.name != "posix", reason="limits and mounts are of POSIX systems"),
]
NO_ROOM = ("no room left", "cannot be read or written", "cannot be written", "cannot be used")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "size=300k") as disk:
        if disk is None:
            pytest.skip("mounting needs root")
        yield disk


def no_room(done: object) -> None:
    said = sentence(done)
    assert any(words in said for words in NO_ROOM), said
    assert "--rebuild" not in said


@pytest.mark.parametrize("size", [8192, 200_000, 400_000])
def test_no_room_for_an_index(run: Path, whole: Path, tmp_path: Path, size: int) -> None:
    database = tmp_path / "x.sqlite"
    no_room(called("index", database, run, "--quiet", before=file_limit(size)))
    if database.exists() and database.stat().st_size:
        assert value(database, "pragma integrity_check") == "ok"
    assert called("index", database, run, "--quiet").returncode == 0
    assert content(database) == content(whole)
    assert names(tmp_path) == ["x.sqlite"]


def test_a_full_disk_while_indexing(run: Path, whole: Path, small_disk: Path, tmp_path: Path) -> None:
    no_room(called("index", small_disk / "x.sqlite", run, "--quiet"))
    for path in small_disk.glob("x.sqlite*"):
        shutil.copy(path, tmp_path)
    index(tmp_path / "x.sqlite", run)
    assert content(tmp_path / "x.sqlite") == content(whole)


def test_no_room_for_a_rebuilt_index_leaves_the_old_one(run: Path, whole: Path, tmp_path: Path) -> None:
    database = shutil.copy(whole, tmp_path / "x.sqlite")
    before = database.read_bytes()
    no_room(called("index", database, run, "--rebuild", before=file_limit(100_000)))
    assert database.read_bytes() == before
    assert names(tmp_path) == ["x.sqlite"]


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.parquet"])
def test_no_room_for_an_export(whole: Path, tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(b"old")
    export = ("rltracer", "export", whole, "-o", tmp_path / name, "--acceptance", "any")
    done = called(*export, before=file_limit(500))
    assert "cannot be written" in sentence(done)
    assert (tmp_path / name).read_bytes() == b"old"
    assert names(tmp_path) == [name]
    assert called(*export).returncode == 0
    assert names(tmp_path) == [name, f"{name}.summary.json"]


def test_a_full_disk_while_exporting(whole: Path, small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * 290_000)
    export = ("rltracer", "export", whole, "-o", small_disk / "out.jsonl", "--acceptance", "any")
    assert "cannot be written: No space left on device" in sentence(called(*export))
    assert names(small_disk) == ["ballast"]
    (small_disk / "ballast").unlink()
    assert called(*export).returncode == 0


def test_no_room_for_full_text(whole: Path, tmp_path: Path) -> None:
    database = shutil.copy(whole, tmp_path / "x.sqlite")
    no_room(called("rltracer", "fts", database, "--quiet", before=file_limit(30_000)))
    assert content(database) == content(whole)
    assert called("rltracer", "fts", database, "--quiet").returncode == 0
    assert content(database) == content(whole)
    assert value(database, "select count(*) from trajectories_text_docsize") == 120
    assert names(tmp_path) == ["x.sqlite"]


def test_no_room_for_an_analysis(whole: Path, tmp_path: Path) -> None:
    done = called("rltracer", "analyze", whole, "-o", tmp_path / "out", before=file_limit(100))
    assert sentence(done)
    assert names(tmp_path / "out") == []


def test_an_index_on_a_read_only_disk(run: Path, whole: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=4m") as disk:
        if disk is None:
            pytest.skip("mounting needs root")
        shutil.copy(whole, disk / "x.sqlite")
        remounted_read_only(disk)
        assert "Read-only file system" in sentence(called("index", disk / "x.sqlite", run))
        assert "Read-only file system" in sentence(called("rltracer", "fts", disk / "x.sqlite"))
        shown = called("rltracer", "inspect", "--run", disk / "x.sqlite", "--step", "1")
        assert (shown.returncode, "question 1" in shown.stdout) == (0, True)
        assert "cannot be written" in sentence(
            called("rltracer", "export", disk / "x.sqlite", "-o", disk / "out.jsonl")
        )


def test_a_run_on_a_read_only_disk(whole: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=4m") as disk:
        if disk is None:
            pytest.skip("mounting needs root")
        write_run(disk / "run")
        remounted_read_only(disk)
        assert called("index", tmp_path / "x.sqlite", disk / "run", "--quiet").returncode == 0
        assert content(tmp_path / "x.sqlite") == content(whole)
        assert "question 1" in called("rltracer", "inspect", "--run", tmp_path / "x.sqlite", "--trajectory", 2).stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file here that is always full")
@pytest.mark.parametrize("arguments", [["inspect"], ["runs", "--json"], ["metadata"], ["success"]], ids="-".join)
def test_no_room_for_what_is_printed(whole: Path, arguments: list[str]) -> None:
    command, *options = arguments
    done = called("rltracer", command, whole, *options, before=lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1))
    assert sentence(done) == "What is printed cannot be written: No space left on device."
