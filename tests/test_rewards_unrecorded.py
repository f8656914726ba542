"""A named reward that a row has a column for and no score is said to be missing, and no weight is made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite import RLTracer
from tests.commands import indexed, rltracer
from tests.indexing import rows
from tests.table_rows import write_parquet


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return an index of rows of TRL, of which one has no score by one of two reward functions."""
    pytest.importorskip("pyarrow")
    told = {"step": 1, "prompt": "6 * 7?", "advantage": 0.0, "accuracy_reward": 1.0}
    table = [told | {"completion": f"{n}.", "think_format_reward": score} for n, score in enumerate((0.5, None))]
    write_parquet(tmp_path / "run/completions/completions_00001.parquet", table)
    assert indexed(tmp_path / "x.sqlite", tmp_path / "run").returncode == 0
    return tmp_path / "x.sqlite"


def test_it_is_told_in_python_and_in_the_terminal(database: Path) -> None:
    with RLTracer(database) as tracer:
        [group] = tracer.step(1).prompts()
        told = [one.load().metadata["rewards"] for one in group.trajectories()]
    scores = {"accuracy_reward": {"score": 1.0, "weight": None}}
    assert told == [
        scores | {"think_format_reward": {"score": 0.5, "weight": None}},
        scores | {"think_format_reward": {"score": None, "weight": None}},
    ]
    lines = [line.strip() for line in rltracer("inspect", database, "--trajectory", 2).stdout.splitlines()]
    assert "accuracy_reward: 1" in lines
    assert "think_format_reward: not recorded" in lines


def test_it_counts_in_no_mean(database: Path) -> None:
    assert rows(database, "select path, trajectories from fields where path like 'rewards.%' order by path") == [
        ("rewards.accuracy_reward.score", 2), ("rewards.think_format_reward.score", 1),
    ]  # fmt: skip
    assert rows(database, "select reward, reward_think_format_reward from trajectories order by id") == [
        (1.5, 0.5), (1.0, None),
    ]  # fmt: skip
