"""Bad input end to end: one sentence, the right exit code, nothing lost, everything countable in `problems`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bad_input.conftest import FILE, GOOD
from tests.commands import Done, indexed, sentence
from tests.indexing import rows, value
from tests.layouts import append, append_torn, line, seal

REPOSITORY = Path(__file__).resolve().parents[2]
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.mark.parametrize("arguments", [["x.sqlite", "missing"], ["run", "run"], ["x.sqlite", "run/step_1/notes"]])
def test_a_process_of_its_own_says_one_sentence(run: Path, arguments: list[str]) -> None:
    (run / "step_1" / "notes").write_text("no rollouts\n")
    command = [sys.executable, "-W", "error", "-m", "rltracer_sqlite.cli.index", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=run.parent, env=environment)
    assert sentence(Done(done.returncode, done.stdout, done.stderr))


def make_empty_file(path: Path) -> None:
    path.touch()


def make_pointer(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")


def make_pointers(path: Path) -> None:
    append(path / FILE)
    make_pointer(path / FILE)


def make_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_torn(path: Path) -> None:
    append(path / FILE)
    append_torn(path / FILE, GOOD)


def make_broken(path: Path) -> None:
    append(path / FILE)
    (path / FILE).write_bytes(b'{"id": "a", "nodes": [\n\x00\xff\n')


def make_unknown(path: Path) -> None:
    append(path / "notes.jsonl", *[{"note": number} for number in range(500)])


def make_outside(path: Path) -> None:
    (path.parent / "secret.jsonl").write_bytes(line(GOOD))
    (path / FILE).parent.mkdir(parents=True)
    (path / FILE).symlink_to(path.parent / "secret.jsonl")


INSTEAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda path: None, "does not exist"),
    "an empty folder": (Path.mkdir, "holds no files"),
    "an empty file": (make_empty_file, "is empty"),
    "a text": (lambda path: path.write_text("hello\n"), "no rollouts of a known format"),
    "bytes": (lambda path: path.write_bytes(bytes(range(256)) * 50), "no rollouts of a known format"),
    "a named pipe": (os.mkfifo, "neither a file nor a folder"),
    "a link to /dev/zero": (make_link, "neither a file nor a folder"),
    "a Git LFS pointer": (make_pointer, "run git lfs pull"),
    "Git LFS pointers": (make_pointers, "run git lfs pull"),
    "a torn line": (make_torn, "no complete record yet"),
    "broken lines": (make_broken, "not readable"),
    "an unknown layout": (make_unknown, "It holds: notes.jsonl"),
    "a link out of the run": (make_outside, "leads outside the run's folder"),
}


@pytest.mark.parametrize(("make", "expected"), INSTEAD.values(), ids=INSTEAD)
def test_what_is_no_run_is_one_sentence_and_leaves_no_database(
    tmp_path: Path, make: Callable[[Path], Any], expected: str
) -> None:
    make(tmp_path / "odd")
    assert expected in sentence(indexed(tmp_path / "x.sqlite", tmp_path / "odd"))
    assert not (tmp_path / "x.sqlite").exists()


@pytest.mark.parametrize("rebuild", [[], ["--rebuild"]])
@pytest.mark.parametrize("make", [make_unknown, make_torn, make_pointers, Path.mkdir])
def test_the_old_database_stays_as_it_was(
    database: Path, tmp_path: Path, make: Callable[[Path], Any], rebuild: list[str]
) -> None:
    make(tmp_path / "odd")
    sentence(indexed(database, tmp_path / "odd", *rebuild))
    assert rows(database, "select uid, id from trajectories") == [("good", 1)]
    assert sorted(path.name for path in tmp_path.glob("x.sqlite*")) == ["x.sqlite"]


@pytest.mark.skipif(ROOT, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_said(run: Path, tmp_path: Path) -> None:
    append(run / "step_2" / "train" / "all" / "traces.jsonl", GOOD)
    (run / "step_1").chmod(0)
    try:
        done = indexed(tmp_path / "x.sqlite", run)
        assert "not read: step_1 cannot be opened: Permission denied" in done.stdout
        assert (done.returncode, "1 file could not be read, and the others are indexed" in done.stderr) == (1, True)
        run.chmod(0)
        assert "Permission denied" in sentence(indexed(tmp_path / "y.sqlite", run))
    finally:
        run.chmod(0o755)
        (run / "step_1").chmod(0o755)


@pytest.mark.threat("T2")
def test_bad_lines_among_good_ones_are_counted(run: Path, tmp_path: Path) -> None:
    bad = [
        b"{\n",
        b"\x00\xff\x00\n",
        b"[1]\n",
        b'{"nodes":7}\n',
        line({**GOOD, "id": "nan", "metrics": {"m": float("nan")}}),
    ]
    with (run / FILE).open("ab") as file:
        file.writelines([*bad, line({**GOOD, "id": "last"})])
    done = indexed(tmp_path / "x.sqlite", run)
    assert done.returncode == 0
    assert "3 trajectories" in done.stdout
    assert "5 problems" in done.stdout
    assert rows(tmp_path / "x.sqlite", "select line from problems order by line") == [(2,), (3,), (4,), (5,), (6,)]
    assert value(tmp_path / "x.sqlite", "select problems from shards") == 5


def make_pipe_shard(path: Path) -> None:
    os.mkfifo(path)


def make_folder_shard(path: Path) -> None:
    path.mkdir()


def make_damaged(path: Path) -> None:
    path.with_name(path.name + ".zst").write_bytes(b"this is no zstd")


def make_cut_off(path: Path) -> None:
    append(path, GOOD)
    sealed = seal(path, 200)
    sealed.write_bytes(sealed.read_bytes()[:-100])


ODD_FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a named pipe": (make_pipe_shard, "not a regular file"),
    "a folder's link": (lambda path: path.symlink_to("/"), "leads outside"),
    "a device's link": (make_link, "leads outside"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "is a link to 'nowhere', where there is nothing"),
    "a circle of links": (lambda path: path.symlink_to(path.name), "cannot be opened"),
    "a folder": (make_folder_shard, "is a folder"),
    "a Git LFS pointer": (make_pointer, "git lfs pull"),
    "a damaged chunk": (make_damaged, "damaged"),
    "a chunk that was cut off": (make_cut_off, "damaged"),
}


def test_a_link_to_nothing_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to("nowhere")
    said = sentence(indexed(tmp_path / "x.sqlite", tmp_path / "run"))
    assert said == f"{tmp_path / 'run'} is a link to 'nowhere', where there is nothing."


@pytest.mark.threat("T1")
@pytest.mark.parametrize(("make", "reason"), ODD_FILES.values(), ids=ODD_FILES)
def test_one_odd_file_does_not_stop_the_others(
    run: Path, tmp_path: Path, make: Callable[[Path], Any], reason: str
) -> None:
    odd = run / "step_2" / "train" / "all" / "traces.jsonl"
    odd.parent.mkdir(parents=True)
    make(odd)
    for _ in range(2):  # the second time nothing is told twice
        done = indexed(tmp_path / "x.sqlite", run)
        could_be_read = reason == "git lfs pull"
        assert done.returncode == (0 if could_be_read else 1)
        assert ("Error: run: 1 file could not be read" in done.stderr) == (not could_be_read)
        assert "1 trajectory" in done.stdout
        [told] = rows(tmp_path / "x.sqlite", "select reason from problems where line is null")
        assert reason in told[0]


def test_a_torn_tail_waits_and_is_told(run: Path, tmp_path: Path) -> None:
    rest = append_torn(run / FILE, {**GOOD, "id": "torn"})
    done = indexed(tmp_path / "x.sqlite", run)
    assert f"waiting: {FILE} has an unfinished last line" in done.stdout
    assert value(tmp_path / "x.sqlite", "select state from shards") == "waiting"
    with (run / FILE).open("ab") as file:
        file.write(rest)
    assert "2 trajectories" in indexed(tmp_path / "x.sqlite", run).stdout


@pytest.mark.threat("T31")
def test_names_cannot_steer_the_terminal(run: Path, tmp_path: Path) -> None:
    (run / FILE).rename(run / "\x1b[31m\x9b\u202ered.jsonl")
    append_torn(run / "\x1b[31m\x9b\u202ered.jsonl", GOOD)
    done = indexed(tmp_path / "\x1b.sqlite", run)
    assert done.returncode == 0
    assert not {"\x1b", "\x9b", "\u202e"} & set(done.stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["x.sqlite"], ["x.sqlite", "run", "--steps", "a-b"], ["x.sqlite", "run", "--steps", "9-1"],
        ["x.sqlite", "run", "--success", "reward=1"], ["x.sqlite", "run", "--nonsense"],
        ["x.sqlite", "a", "b", "--name", "c"],
    ],
)  # fmt: skip
def test_wrong_arguments_are_exit_code_2(arguments: list[str]) -> None:
    assert sentence(indexed(*arguments), 2)
