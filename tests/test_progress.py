"""How far a long reading is: a bar on a terminal, in a log lines that are asked for, and nothing on stdout."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite.cli import progress
from tests.commands import indexed, rltracer, sentence
from tests.layouts import append, message, trace


def test_a_line_is_said_at_most_every_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, 29.9, 30.0, 31.0, 59.9, 61.5])
    tell = progress.progress_lines("my\nrun", lambda: next(clock))
    for read in range(1, 6):
        tell(read * 1_000_000, 9_000_000)
    out, err = capsys.readouterr()
    assert [line[len("2026-11-30 12:00:00 ") :] for line in err.splitlines()] == [
        "my␊run: 2.0 MB of 9.0 MB read",
        "my␊run: 5.0 MB of 9.0 MB read",
    ]
    assert out == ""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for number in range(3):
        record = trace([message("user", "Why?"), message("assistant", f"Answer {number}")], id=f"t{number}")
        append(tmp_path / f"run/rollouts/step_{number}/train/all/traces.jsonl", record)
    return tmp_path / "run"


@pytest.mark.parametrize(("asked", "is_said"), [([], False), (["--progress"], True)])
def test_a_pipe_gets_lines_only_where_they_are_asked_for(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str], is_said: bool
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    told = indexed(tmp_path / "x.sqlite", run, *asked, "--fts", "--jobs", 1)
    lines = [line[len("2026-11-30 12:00:00 ") :] for line in told.stderr.splitlines()]
    assert bool(lines) is is_said
    if is_said:
        assert lines[0].startswith("run: ")
        assert lines[-1].startswith("texts: ")
        assert rltracer("fts", tmp_path / "x.sqlite", "--rebuild", *asked).stderr.endswith(" read\n")
        export = rltracer("export", tmp_path / "x.sqlite", "--acceptance", "any", "-o", tmp_path / "x.jsonl", *asked)
        assert "Writing rows: 2 of 2\n" in export.stderr
    assert " read\n" not in told.stdout


@pytest.mark.parametrize("command", ["index", "fts", "export"])
def test_quiet_and_progress_are_refused(run: Path, tmp_path: Path, command: str) -> None:
    asked = (tmp_path / "x.sqlite", "--quiet", "--progress")
    done = indexed(*asked, run) if command == "index" else rltracer(command, *asked)
    assert "--quiet and --progress ask for different things" in sentence(done, 2)
