"""A step, split or environment that a run has not: the sentence names those that it has."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli.analyze import command as analyze
from rltracer_sqlite.cli.export import command as export
from rltracer_sqlite.cli.plot import command as plot
from tests.index_factory import make_index

ROWS = [{"uid": f"u{n}", "step": n, "split": "train", "env": "math", "reward": 1.0} for n in (1, 2, 3)]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return make_index(tmp_path / "x.sqlite", ROWS)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--steps", "9"],
            "The run demo has no trajectory with split train, step 9. It has steps 1–3 with split train.",
        ),
        (
            ["--steps", "7-", "--split", "any"],
            "The run demo has no trajectory with steps from 7 on. It has steps 1–3.",
        ),
        (["--split", "eval"], "The run demo has no trajectory with split eval. It has split train."),
    ],
)
def test_an_export_says_which_exist(database: Path, tmp_path: Path, options: list[str], sentence: str) -> None:
    done = CliRunner().invoke(export, [str(database), "-o", str(tmp_path / "o.jsonl"), *options])
    assert (done.exit_code, done.output) == (1, f"Error: {sentence}\n")
    told = CliRunner().invoke(export, [str(database), "--dry-run", *options])
    assert (told.exit_code, told.output.splitlines()[-1]) == (1, f"{sentence}")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--split", "evla"], "The run demo has no trajectory with split evla. It has split train."),
        (
            ["--env", "chess", "--step-end", "2"],
            "The run demo has no trajectory with env chess, steps up to 2. It has env math with steps up to 2.",
        ),
        (
            ["--step-start", "4", "--step-end", "5"],
            "The run demo has no trajectory with steps 4 to 5. It has steps 1–3.",
        ),
    ],
)
def test_an_analysis_and_a_chart_say_which_exist(
    database: Path, tmp_path: Path, options: list[str], sentence: str
) -> None:
    for command, given in ((analyze, []), (plot, ["pass-rate"])):
        output = tmp_path / "out.html"
        done = CliRunner().invoke(command, [str(database), *given, "-o", str(output), *options])
        assert (done.exit_code, done.output) == (1, f"Error: {sentence}\n")
        assert not output.exists()


def test_a_run_without_the_split_does_not_stop_the_others(tmp_path: Path) -> None:
    other = {"run": "other", "uid": "e", "step": 1, "split": "eval", "env": None, "reward": 0.0}
    database = make_index(tmp_path / "x.sqlite", [*ROWS, other])
    done = CliRunner().invoke(analyze, [str(database), "-o", str(tmp_path / "out"), "--split", "eval"])
    assert done.exit_code == 0
    assert "The run demo has no trajectory with split eval. It has split train.\n" in done.output
    assert "1 scored trajectory" in done.output
