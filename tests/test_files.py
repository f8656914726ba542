"""Guarded reads: a path and a place may come from a database, and lead nowhere but to regular files of the run."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources import nothing_found, source_for
from rltracer_sqlite.sources.base import LocatorError, SourceError
from rltracer_sqlite.sources.files import MAX_RECORD_BYTES, open_inside, open_shard, read_bytes
from rltracer_sqlite.sources.places import base_folder
from rltracer_sqlite.sources.prime_rl.layout import find_shards
from tests.layouts import append, line, message, seal, trace


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "secret.jsonl").write_text("secret\n")
    (tmp_path / "run" / "step_1").mkdir(parents=True)
    (tmp_path / "run" / "step_1" / "a.jsonl").write_bytes(b"0123456789\n")
    return tmp_path / "run"


def test_a_record_is_read_by_its_place(run: Path) -> None:
    assert read_bytes(run, "step_1/a.jsonl", 2, 3) == b"234"
    assert read_bytes(run / "step_1" / "a.jsonl", "a.jsonl", 2, 3) == b"234"
    assert base_folder(run / "step_1" / "a.jsonl") == run / "step_1"


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="folders are opened one by one on Linux only")
def test_a_signal_while_folders_are_opened_is_not_taken_for_an_error(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, left = os.close, [1]

    def interrupted(descriptor: int) -> None:
        close(descriptor)
        if left:
            left.pop()
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_bytes(run, "step_1/a.jsonl", 2, 3)


@pytest.mark.threat("T1")
@pytest.mark.parametrize("ending", ["", ".zst"])
def test_of_a_run_that_is_one_file_its_neighbours_are_not_read(run: Path, ending: str) -> None:
    file = run / "step_1" / "a.jsonl"
    (run / "step_1" / "b.jsonl").write_bytes(b"neighbour\n")
    if ending:
        file = seal(file)
    assert read_bytes(file, "a.jsonl", 2, 3) == b"234"
    for path in ("b.jsonl", "../secret.jsonl", "./b.jsonl", "../step_1/b.jsonl"):
        with pytest.raises(LocatorError, match="is not there any more"):
            read_bytes(file, path, 0, 3)


@pytest.mark.threat("T1")
@pytest.mark.parametrize(
    "path",
    [
        "", ".", "..", "../secret.jsonl", "step_1/../../secret.jsonl", "/etc/passwd", "step_1", "step_1/a.jsonl/x",
        "a\0b", "x" * 5000, "missing.jsonl", 7, None, b"step_1/a.jsonl",
    ],
)  # fmt: skip
def test_paths_that_lead_elsewhere_are_refused(run: Path, path: Any) -> None:
    with pytest.raises(LocatorError):
        read_bytes(run, path, 0, 1)


@pytest.mark.threat("T1")
@pytest.mark.parametrize("target", ["../../secret.jsonl", "/etc/passwd", "/dev/zero", "a.jsonl/..", "loop", "nowhere"])
def test_links_that_lead_elsewhere_are_refused(run: Path, target: str) -> None:
    (run / "step_1" / "loop").symlink_to(target)
    with pytest.raises(LocatorError):
        read_bytes(run, "step_1/loop", 0, 1)


def test_links_inside_the_run_are_followed(run: Path) -> None:
    (run / "latest").symlink_to("step_1")
    (run / "b.jsonl").symlink_to("step_1/a.jsonl")
    assert read_bytes(run, "latest/a.jsonl", 0, 2) == read_bytes(run, "b.jsonl", 0, 2) == b"01"


def test_the_run_itself_may_be_reached_by_a_link(run: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("run")
    assert read_bytes(tmp_path / "link", "step_1/a.jsonl", 0, 2) == b"01"


@pytest.mark.threat("T1")
@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="folders can be passed through one by one on Linux only")
def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.jsonl").write_bytes(b"secret")
    is_inside = Path.is_relative_to

    def swapped(path: Path, *folder: Any) -> bool:
        (run / "step_1").rename(tmp_path / "moved")
        (run / "step_1").symlink_to(tmp_path / "outside")
        return is_inside(path, *folder)

    monkeypatch.setattr(Path, "is_relative_to", swapped)
    with pytest.raises(LocatorError, match="cannot be opened"):
        read_bytes(run, "step_1/a.jsonl", 0, 6)


@pytest.mark.threat("T1")
@pytest.mark.parametrize(
    ("link", "target", "said"),
    [
        ("b.jsonl", "nowhere", "b.jsonl is a link to 'nowhere', where there is nothing (looked under {run})."),
        ("b.jsonl.zst", "/no/where", "b.jsonl.zst is a link to '/no/where', where there is nothing (looked under "),
        ("b.jsonl", "no\x1b[1m\udcff\n", r"b.jsonl is a link to 'no\x1b[1m\udcff\n', where"),
        ("b.jsonl", "n" * 255, "b.jsonl is a link to 'nnn"),
        ("step_2", "gone", "step_2/b.jsonl cannot be reached: step_2 is a link to 'gone', where there is nothing"),
        ("step_2", "step_1", "step_2/b.jsonl is not there any more"),
        ("step_2", "../outside", "step_2/b.jsonl is not there any more"),
        ("b.jsonl", "b.jsonl", "b.jsonl cannot be opened"),
    ],
)
def test_a_link_to_nothing_is_said_to_be_one(run: Path, tmp_path: Path, link: str, target: str, said: str) -> None:
    """Of what lies outside the run nothing is told, as where another link there leads."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b.jsonl").symlink_to("secret")
    (run / link).symlink_to(target)
    with pytest.raises(LocatorError) as error:
        read_bytes(run, "step_2/b.jsonl" if link == "step_2" else "b.jsonl", 0, 3)
    assert said.format(run=run) in str(error.value)
    assert len(str(error.value)) < 400
    assert str(error.value).isprintable()


@pytest.mark.threat("T1")
def test_pipes_and_sockets_are_no_shards(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(run / "pipe.jsonl")
    monkeypatch.chdir(run)  # the name of a socket may not be long
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.jsonl")
        for name in ("pipe.jsonl", "socket.jsonl"):
            with pytest.raises(LocatorError, match=r"not a regular file|cannot be opened"):
                read_bytes(run, name, 0, 1)


@pytest.mark.threat("T11")
@pytest.mark.parametrize(
    ("offset", "length"),
    [(-1, 1), (0, 0), (0, -1), (0, MAX_RECORD_BYTES + 1), (2**63, 1), ("0", 1), (0, 1.0), (None, 1), (True, 1)],
)
def test_places_out_of_range_are_refused(run: Path, offset: Any, length: Any) -> None:
    with pytest.raises(LocatorError):
        read_bytes(run, "step_1/a.jsonl", offset, length)


def test_a_place_beyond_the_end_says_that_the_file_has_changed(run: Path) -> None:
    with pytest.raises(LocatorError, match="shorter than when it was indexed"):
        read_bytes(run, "step_1/a.jsonl", 5, 50)


def test_no_descriptor_is_left_open(run: Path) -> None:
    os.mkfifo(run / "pipe.jsonl")
    (run / "bad.jsonl.zst").write_bytes(b"no zstd, and long enough for a footer")
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    for name in ("step_1/a.jsonl", "pipe.jsonl", "missing.jsonl", "bad.jsonl", "../secret.jsonl"):
        with pytest.raises(LocatorError):
            read_bytes(run, name, 100, 100)
    assert not before or set(os.listdir("/proc/self/fd")) == before


def test_a_shard_is_the_same_plain_and_sealed(run: Path) -> None:
    path = run / "step_1" / "a.jsonl"
    seal(path, keep=True)
    path.write_bytes(b"plain\n")
    assert read_bytes(run, "step_1/a.jsonl", 0, 5) == b"plain"  # while it is being sealed the plain one counts
    path.unlink()
    assert read_bytes(run, "step_1/a.jsonl", 0, 5) == b"01234"


def test_open_inside_tells_a_missing_file_from_a_refused_one(run: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_inside(run, "missing.jsonl")
    with pytest.raises(FileNotFoundError):
        open_inside(run / "missing", "a.jsonl")


# What discovery makes of odd names and places


def paths(root: Path) -> list[str]:
    return [shard.path for shard in find_shards(root)]


def test_discovery_opens_nothing_and_follows_no_folder_out_of_the_run(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.jsonl").write_bytes(b"{}\n")
    (run / "out").symlink_to("../elsewhere")
    (run / "in").symlink_to("step_1")
    os.mkfifo(run / "pipe.jsonl")
    assert paths(run) == ["out", "pipe.jsonl", "step_1/a.jsonl"]  # what cannot be opened is listed, and will say why


@pytest.mark.parametrize(
    ("place", "step"),
    [("step_0", 0), ("step_007", 7), ("step_999999999999999", 999999999999999), ("step_99999999999999999999", None)],
)
def test_a_step_is_a_number_that_a_database_can_hold(tmp_path: Path, place: str, step: int | None) -> None:
    append(tmp_path / place / "train" / "all" / "traces.jsonl", trace([message("user", "q")]))
    assert [shard.step for shard in find_shards(tmp_path)] == [step]


def test_a_name_that_is_no_text_is_listed_and_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.jsonl")).write_bytes(line(trace([message("user", "q")])))
    [path] = paths(tmp_path)
    assert path == "caf\\udce9.jsonl"
    with pytest.raises(LocatorError, match="not UTF-8"), open_shard(tmp_path, path):
        pass


@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path), lambda path: path.symlink_to("/dev/zero")])
def test_a_run_is_a_file_or_a_folder(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "run")
    with pytest.raises(SourceError, match="neither a file nor a folder"):
        source_for(tmp_path / "run")


def test_a_path_that_is_too_long_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot be read|does not exist"):
        source_for(tmp_path / ("x" * 5000))


def test_what_is_found_instead_is_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    for name in ("a", "b", "c" * 50, "d", "e"):
        (tmp_path / name).touch()
    assert f"It holds: a, b, {'c' * 50}, d and 2 more." in nothing_found(tmp_path)
    (tmp_path / "a").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert nothing_found(tmp_path / "a").endswith("run git lfs pull.")
    assert nothing_found(tmp_path / "b").endswith("is empty.")
