"""Numbers and ranges on the command line: those beyond what an index holds are wrong arguments, in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite.cli import main
from tests.bad_input.conftest import FILE, GOOD
from tests.commands import called, sentence
from tests.index_factory import make_index
from tests.indexing import index
from tests.layouts import append

LARGE = {"30 digits": "9" * 30, "5000 digits": "9" * 5000}
COMMANDS = [
    ["inspect", "--hardest"], ["analyze", "--step-start"], ["analyze", "--step-end"], ["analyze", "--window"],
    ["plot", "reward", "-o", "x.html", "--step-start"], ["plot", "reward", "-o", "x.html", "--window"],
]  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    append(tmp_path / "run" / FILE, GOOD)
    index(tmp_path / "run.sqlite", tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("number", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_numbers_that_no_index_holds_are_wrong_arguments(run: Path, arguments: list[str], number: str) -> None:
    name, *others = arguments
    assert sentence(called(main, name, run.with_suffix(".sqlite"), *others, number), 2)


@pytest.mark.parametrize("steps", [*LARGE.values(), "5-2", "x", "-", "1-2-3"], ids=[*LARGE, "5-2", "x", "-", "1-2-3"])
def test_a_range_of_steps_is_wrong_for_every_command_alike(run: Path, steps: str) -> None:
    database = run.with_suffix(".sqlite")
    said = sentence(called(main, "export", database, "--dry-run", f"--steps={steps}"), 2)
    assert sentence(called(main, "index", database, run, f"--steps={steps}"), 2) == said


@pytest.mark.parametrize("name", ["analyze", "plot", "inspect"])
def test_the_help_shows_no_limit_where_there_is_none(name: str) -> None:
    assert "None" not in called(main, name, "--help").stdout


@pytest.mark.parametrize("step", [2**63 - 1, -(2**63)])
def test_the_largest_and_smallest_step_that_an_index_holds_are_steps(tmp_path: Path, step: int) -> None:
    database = make_index(tmp_path / "x.sqlite", [{"uid": "a", "prompt": "a", "reward": 1.0, "step": step}])
    for asked in (["--hardest"], ["--easiest"], ["--prompt", 1]):
        assert called(main, "inspect", database, *asked).returncode == 0


def test_the_numbers_of_a_trajectory_are_written_out(tmp_path: Path) -> None:
    record = {**GOOD, "metrics": {"tokens": 123456.0, "share": 0.123456}}
    append(tmp_path / "run/rollouts/step_12345/train/all/traces.jsonl", record, {**record, "id": "other"})
    index(tmp_path / "x.sqlite", tmp_path / "run")
    one = called(main, "inspect", tmp_path / "x.sqlite", "--trajectory", 1).stdout
    both = called(main, "inspect", tmp_path / "x.sqlite", "--trajectory", 1, "--with", 2).stdout
    assert "step 12345 " in one
    assert "tokens 123456, share 0.1235" in one
    assert "e+" not in one + both
