"""The caption of a chart says what of the run was not read, and which split its counts are of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import indexed, rltracer
from tests.layouts import append, message, trace

TRACES = "rollouts/step_{}/train/all/traces.jsonl"
SAID = [message("user", "Well?"), message("assistant", "Yes.")]
UNREAD = (
    "No trajectories of steps 2–3 of train were read. "
    "Note: 2 problems, in steps 2–3; 2 of 4 files could not be read, of steps 2–3"
)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    for step in (1, 2, 3, 4):
        append(tmp_path / "run" / TRACES.format(step), trace(SAID, id=f"t{step}", reward=step % 2))
    for step in (2, 3):
        file = tmp_path / "run" / TRACES.format(step)
        file.unlink()
        file.mkdir()
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    return tmp_path / "x.sqlite"


@pytest.mark.parametrize("chart", ["pass-rate", "reward", "difficulty"])
def test_a_caption_says_which_steps_were_not_read(database: Path, tmp_path: Path, chart: str) -> None:
    done = rltracer("plot", database, chart, "-o", tmp_path / "x.html")
    assert UNREAD in " ".join(done.stdout.split())
    assert UNREAD.replace("–", "\\u2013") in (tmp_path / "x.html").read_text()
    within = rltracer("plot", database, chart, "--step-start", 4, "-o", tmp_path / "x.html").stdout
    assert "No trajectories of" not in " ".join(within.split())


def test_a_picture_says_it_beneath_its_title(database: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    assert rltracer("plot", database, "reward", "-o", tmp_path / "x.svg").returncode == 0
    assert ">No trajectories of steps 2–3 of train were read. Note: 2 problems" in (tmp_path / "x.svg").read_text()


def test_a_chart_of_one_split_names_it(database: Path, tmp_path: Path) -> None:
    said = " ".join(rltracer("plot", database, "difficulty", "-o", tmp_path / "x.html").stdout.split())
    assert "Pass rates of 1 of 1 prompt of train in " in said
    assert "; all of train scored." in said
