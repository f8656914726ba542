"""The view of advantages: the recorded ones, and where none is, the derived ones that pages and the terminal show."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rltracer_sqlite.index.queries import trajectory_row
from tests.index_factory import make_index

ROWS = [{"reward": 1.0, "advantage": 0.25}, {"reward": 0.5}, {"reward": 0.0}, {}]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return make_index(tmp_path / "index.sqlite", ROWS)


def test_it_has_recorded_and_derived_advantages(made: Path) -> None:
    with closing(sqlite3.connect(made)) as connection:
        found = connection.execute(
            "select trajectory_id, advantage, is_derived from advantages order by trajectory_id"
        ).fetchall()
        assert found == [(1, 0.25, 0), (2, 0.0, 1), (3, -0.5, 1), (4, None, None)]
        for number, advantage, _ in found:
            row = trajectory_row(connection, number) or {}
            assert advantage in (row["advantage"], row["advantage_derived"])


def test_a_trajectory_that_is_alone_in_its_group_has_none(tmp_path: Path) -> None:
    rows = [{"group": "one", "reward": 1.0}, {"group": "two", "reward": 0.5}]
    with closing(sqlite3.connect(make_index(tmp_path / "index.sqlite", rows))) as connection:
        found = connection.execute("select distinct advantage, is_derived from advantages").fetchall()
        assert found == [(None, None)]
        assert [(trajectory_row(connection, n) or {})["advantage_derived"] for n in (1, 2)] == [None] * 2


def test_equal_rewards_have_a_zero_without_a_sign(tmp_path: Path) -> None:
    with closing(sqlite3.connect(make_index(tmp_path / "index.sqlite", [{"reward": 0.1}] * 3))) as connection:
        found = connection.execute("select distinct advantage from advantages").fetchall()
        row = trajectory_row(connection, 1) or {}
    assert [str(advantage) for (advantage,) in [*found, (row["advantage_derived"],)]] == ["0.0", "0.0"]


@pytest.mark.parametrize(
    ("query", "reads"),
    [
        ("select * from advantages where trajectory_id = 2", "SEARCH trajectories USING INTEGER PRIMARY KEY"),
        ("select * from advantages where prompt_group_id = 1", "SEARCH trajectories USING INDEX trajectories_group"),
        ("select count(*) from advantages", "SCAN trajectories USING COVERING INDEX"),
    ],
)
def test_it_is_cheap_to_read(made: Path, query: str, reads: str) -> None:
    with closing(sqlite3.connect(made)) as connection:
        plan = [row[3] for row in connection.execute(f"explain query plan {query}")]
    assert plan[0].startswith(reads)
    assert not any(step.startswith("SCAN") for step in plan[1:])
    assert ("CORRELATED" in " ".join(plan)) == (not query.startswith("select count"))
