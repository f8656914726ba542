"""A run of one trajectory, and the index of it that a person made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import indexed
from tests.layouts import append, message, trace

FILE = "step_1/train/all/traces.jsonl"
GOOD = trace([message("user", "6 * 7?"), message("assistant", "42")], id="good", rewards={"r": 1.0})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    append(tmp_path / "run" / FILE, GOOD)
    return tmp_path / "run"


@pytest.fixture
def database(tmp_path: Path, run: Path) -> Path:
    assert indexed(tmp_path / "x.sqlite", run).returncode == 0
    return tmp_path / "x.sqlite"
