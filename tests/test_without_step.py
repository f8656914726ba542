"""Trajectories of files that no folder of a step holds, beside others: said wherever a run's are counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rltracer_sqlite import list_runs
from tests.commands import indexed, rltracer
from tests.layouts import append, message, trace

SAID = [message("user", "6 * 7?"), message("assistant", "42")]
STEP, BESIDE = "rollouts/step_{}/train/all/traces.jsonl", "rollouts/more.jsonl"


def write_run(root: Path, files: dict[str, int]) -> Path:
    for file, count in files.items():
        append(root / file, *(trace(SAID, id=f"{file} {number}", reward=1.0) for number in range(count)))
    return root


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the index of a run that has two steps and what is of none, and of two that have one kind."""
    made = tmp_path_factory.mktemp("without")
    files = {STEP.format(1): 2, STEP.format(2): 2, BESIDE: 3}
    runs = [
        write_run(made / "both", files),
        write_run(made / "steps", {STEP.format(1): 2}),
        write_run(made / "none", {BESIDE: 3}),
    ]
    (made / "said").write_text(indexed(made / "x.sqlite", *runs).stdout)
    return made


def test_indexing_counts_them(folder: Path) -> None:
    said = [line for line in (folder / "said").read_text().splitlines() if "prompt group" in line]
    assert said == [
        "both: 7 trajectories, 3 without a step, 3 prompt groups, 2 steps, 0 problems",
        "steps: 2 trajectories, 1 prompt group, 1 step, 0 problems",
        "none: 3 trajectories, 1 prompt group, no steps, 0 problems",
    ]


def test_the_lists_of_runs_count_them(folder: Path) -> None:
    listed = [line for line in rltracer("runs", folder / "x.sqlite").stdout.splitlines() if "trajectories" in line]
    assert listed == [
        "  1  both: 7 trajectories, 3 without a step, read completely",
        "  2  steps: 2 trajectories, read completely",
        "  3  none: 3 trajectories, read completely",
    ]
    assert "\nWithout a step: 3 trajectories of run 1.\n" in rltracer("inspect", folder / "x.sqlite").stdout
    told = [json.loads(line) for line in rltracer("runs", folder / "x.sqlite", "--json").stdout.splitlines()]
    assert [one["without_step"] for one in told] == [3, 0, 3]
    assert [run.without_step for run in list_runs(folder / "x.sqlite")] == [3, 0, 3]


@pytest.mark.parametrize(
    ("run", "said"), [("both", "2 steps, 3 trajectories without a step"), ("steps", "1 step"), ("none", "no steps")]
)
def test_the_list_of_steps_counts_them(folder: Path, run: str, said: str) -> None:
    shown = rltracer("inspect", folder / "x.sqlite", "--run", run).stdout.splitlines()
    assert shown[0].partition(": ")[2].partition(";")[0] == said
