"""What Windows lacks is not needed: every module is imported, and a run indexed and read, without it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rltracer_sqlite.cli.index import main
from rltracer_sqlite.sources import readers
from rltracer_sqlite.sources.seekable import SeekableZstd
from tests.indexing import index
from tests.layouts import append, message, trace

PROGRAM = """
import os, pkgutil, signal, sys
from importlib import import_module
from pathlib import Path

import datasette.app, platformdirs, sqlite_utils  # these take what this system has

for name in ("fcntl", "grp", "posix_ipc", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for name in ("pread", "preadv", "pwrite", "fork", "getuid", "geteuid", "statvfs", "fchmod", "fchown", "mkfifo",
             "posix_spawnp", "sched_getaffinity", "O_PATH", "O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGUSR1", "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)

for package in ("rltracer_sqlite", "datasette_rltracer"):
    for module in pkgutil.walk_packages(import_module(package).__path__, package + "."):
        try:
            import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name in (None, "fcntl", "grp", "pwd", "resource", "termios", "tty"):
                raise
from click.testing import CliRunner
from rltracer_sqlite.cli import group

def run(*words):
    result = CliRunner().invoke(group, words)
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result.output

run("demo", "demo", "--no-serve")
assert "trajectories" in run("inspect", "--run", "demo/demo.sqlite", "--step", "8")
assert "assistant" in run("inspect", "--run", "demo/demo.sqlite", "--trajectory", "3")
run("export", "demo/demo.sqlite", "--mode", "sft", "-o", "rows.jsonl")
assert b"\\r\\n" not in Path("rows.jsonl").read_bytes()
print("done")
"""


def test_every_module_and_the_demo_work_without_what_windows_lacks(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "RLTRACER_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


def test_reading_at_a_place_leaves_the_position_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pread", "preadv"):
        monkeypatch.delattr(os, name, raising=False)
    (tmp_path / "a.jsonl").write_bytes(b"0123456789")
    descriptor = os.open(tmp_path / "a.jsonl", os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        os.lseek(descriptor, 4, os.SEEK_SET)
        assert [readers.read_at(descriptor, 3, place) for place in (0, 8, 99)] == [b"012", b"89", b""]
        assert os.read(descriptor, 2) == b"45"
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("has_table", [True, False])
def test_packed_files_are_read_without_pread(has_table: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zstandard

    from tests.layouts import seal

    for name in ("pread", "preadv"):
        monkeypatch.delattr(os, name, raising=False)
    content = b"".join(b"%d\n" % number for number in range(5000))
    file = tmp_path / "a.jsonl"
    file.write_bytes(content)
    if has_table:
        seal(file)
    else:
        file.with_suffix(".jsonl.zst").write_bytes(zstandard.compress(content))
        file.unlink()
    packed = readers.PlainFile(os.open(tmp_path / "a.jsonl.zst", os.O_RDONLY | getattr(os, "O_BINARY", 0)))
    reader = SeekableZstd(packed, "a")
    try:
        assert [reader.pread(5, place) for place in (100, 0, len(content) - 5)] == [
            content[100:105], content[:5], content[-5:],
        ]  # fmt: skip
        assert reader.size() == len(content)
    finally:
        reader.close()


def test_a_database_that_windows_holds_open_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(source: object, target: object) -> None:
        raise PermissionError(errno.EACCES, "Access is denied", str(target))

    append(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", trace([message("user", "why?")], id="one"))
    index(tmp_path / "x.sqlite", tmp_path / "run")
    before = (tmp_path / "x.sqlite").read_bytes()
    monkeypatch.setattr("os.replace", refused)
    monkeypatch.setattr(
        "sys.argv", ["rltracer-index", "--rebuild", "--quiet", str(tmp_path / "x.sqlite"), str(tmp_path / "run")]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    said = f"Error: {tmp_path / 'x.sqlite'} cannot be used: Access is denied."
    assert (ended.value.code, capsys.readouterr().err.splitlines()[-1:]) == (1, [said])
    assert (tmp_path / "x.sqlite").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "x.sqlite"]
