"""Where an export is written to: odd places, full disks, and what an interrupted export leaves behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli.export import command
from rltracer_sqlite.export import ExportError, ExportPreferences, TraceDataExporter
from tests.export_runs import export, indexed, rollout, spec, write_data
from tests.interrupts import TAKE_INTERRUPTS

ROOT = Path(__file__).parents[1]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return indexed(tmp_path, {1: [rollout(f"t{n}", f"q{n}", answer="x" * 1000) for n in range(20)]})


def left(folder: Path) -> set[str]:
    """Return the names in a folder, without the run and its index."""
    return {path.name for path in folder.iterdir()} - {"run", "run.sqlite"}


def test_a_link_is_replaced_and_never_written_through(tmp_path: Path, database: Path) -> None:
    (tmp_path / "real.jsonl").write_text("old")
    (tmp_path / "o.jsonl").symlink_to(tmp_path / "real.jsonl")
    assert len(export(spec(database), tmp_path / "o.jsonl")) == 20
    assert not (tmp_path / "o.jsonl").is_symlink()
    assert (tmp_path / "real.jsonl").read_text() == "old"


def test_places_that_take_no_rows(tmp_path: Path, database: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "to-folder.jsonl").symlink_to(tmp_path / "folder.jsonl")
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "file").write_text("")
    (tmp_path / "taken.jsonl.summary.json").mkdir()
    before = left(tmp_path)
    for name in ("folder.jsonl", "to-folder.jsonl", "loop.jsonl", "pipe.jsonl", "file/o.jsonl", "taken.jsonl", "a\0b",
                 f"{'n' * 300}.jsonl"):  # fmt: skip
        with pytest.raises(ExportError, match=r"cannot be written|the name of no file"):
            export(spec(database), tmp_path / name)
        assert left(tmp_path) == before


def test_a_device_is_not_replaced_by_a_file(database: Path) -> None:
    with pytest.raises(ExportError, match="no ordinary file"):
        export(spec(database), Path(os.devnull))
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize("how", ["same", "hard", "soft"])
def test_the_data_that_an_export_reads_is_not_written_over(tmp_path: Path, database: Path, how: str) -> None:
    data = write_data(tmp_path / "data.jsonl", ["q"])
    output = data if how == "same" else tmp_path / "other.jsonl"
    if how == "hard":
        output.hardlink_to(data)
    elif how == "soft":
        output.symlink_to(data)
    before = data.read_bytes()
    with pytest.raises(ExportError, match="is what the export reads"):
        export(spec(database, rl_data_path=data), output, mode="rl", acceptance="any")
    assert data.read_bytes() == before


@pytest.mark.parametrize("name", ["o.jsonl", "o.jsonl.gz", "o.parquet"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, database: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where files may not grow, Python would leave cut-off bytecode of what it imports for all tests after this one.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_text("old")
    exporter = TraceDataExporter([spec(database)], ExportPreferences(include_provenance=True))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        with pytest.raises(ExportError, match="cannot be written: File too large"):
            exporter.write(tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert (tmp_path / name).read_text() == "old"
    assert left(tmp_path) == {name}


def test_what_cannot_be_read_is_not_said_to_be_unwritable(tmp_path: Path, database: Path) -> None:
    def progress(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "traces.jsonl")

    with pytest.raises(PermissionError, match="traces"):
        TraceDataExporter([spec(database)], progress=progress).write(tmp_path / "o.jsonl")
    assert left(tmp_path) == set()


def test_an_interrupted_export_leaves_the_old_file_and_nothing_else(tmp_path: Path, database: Path) -> None:
    (tmp_path / "o.jsonl").write_text("old")
    program = f"""
import sys, time
from rltracer_sqlite.export import TraceDataExporter
def progress(doing, done, total):
    if done == 5:
        print("writing", flush=True)
        time.sleep(600)
TraceDataExporter([{str(database)!r}], progress=progress).write({str(tmp_path / "o.jsonl")!r})
"""
    with subprocess.Popen(
        [sys.executable, "-c", TAKE_INTERRUPTS + program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"writing\n"
        assert any(name.endswith(".part") for name in left(tmp_path))
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    assert running.returncode != 0
    assert (tmp_path / "o.jsonl").read_text() == "old"
    assert left(tmp_path) == {"o.jsonl"}


def test_a_failed_export_to_a_folder_leaves_no_summary(tmp_path: Path, database: Path) -> None:
    (tmp_path / "out").mkdir()
    done = CliRunner().invoke(command, [str(database), "-o", str(tmp_path / "out")])
    assert (done.exit_code, "it is a folder" in done.output) == (1, True)
    assert left(tmp_path) == {"out"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_a_sentence(tmp_path: Path, database: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    with pytest.raises(ExportError, match="cannot be written: Permission denied"):
        export(spec(database), folder / "o.jsonl")
