"""The numbers of steps are those of what is there at every commit, whatever was read and whatever is read again."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources.prime_rl import scan
from tests.counting import are_counted
from tests.indexing import dump, index, rows, stopped_after, value
from tests.layouts import append, line, message, trace

STEPS = "rollouts/step_{}/train/{}/traces.jsonl"


def record(number: int, **extra: Any) -> dict[str, Any]:
    """Return a trace of some prompt and env, scored or not."""
    chosen = random.Random(number)
    return trace(
        [message("user", f"question {number % 5}"), *[message("assistant", "yes")] * chosen.choice([1, 2])],
        id=f"t{number}",
        rewards={"r": chosen.choice([0.1, 0.7, 1.0])} if chosen.random() < 0.8 else {},
        is_truncated=chosen.random() < 0.2,
        **extra,
    )


@pytest.fixture(autouse=True)
def small_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "COMMIT_RECORDS", 7)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    root = tmp_path / "run"
    for step in (1, 2):
        records = [record(100 * step + number) for number in range(40)]
        append(root / STEPS.format(step, "all"), *records)
        append(root / STEPS.format(step, "effective"), *records[::2])
    return root


def indexed(database: Path, run: Path) -> int:
    """Index, counting after each commit, and return after how many there was something to count."""
    found = []
    index(database, run, progress=lambda *_: found.append(are_counted(database)))
    are_counted(database)
    return sum(map(bool, found))


def test_while_a_run_is_read(run: Path, database: Path) -> None:
    assert indexed(database, run) > 12


def test_while_what_came_is_read(run: Path, database: Path) -> None:
    index(database, run)
    append(run / STEPS.format(2, "all"), *[record(1000 + number) for number in range(30)])
    assert indexed(database, run) >= 4


def test_while_a_rewritten_run_is_read_again(run: Path, database: Path) -> None:
    index(database, run)
    for step in (1, 2):
        # Others in another order, some of them of the other step, with what else was drawn for them.
        records = [record(100 * (3 - step) + number) for number in range(1, 38, 3)]
        records += [{**record(7000 + number), "id": f"t{100 * step + number}"} for number in range(0, 38, 3)]
        (run / STEPS.format(step, "all")).write_bytes(b"".join(map(line, reversed(records))))
    assert indexed(database, run) > 6


def test_where_a_label_that_comes_late_changes_the_rule(run: Path, database: Path) -> None:
    labelled = [record(1000 + number, metrics={"correct_final_label": number % 2}) for number in range(20)]
    append(run / STEPS.format(2, "all"), *labelled)
    assert indexed(database, run) > 12
    assert rows(database, "select step, scored from steps order by step") == [(1, 0), (2, 20)]


def stopped(commits: int, database: Path, run: Path) -> None:
    """Index, and stop after so many commits, in the middle of a file."""
    stopped_after(commits, database, run)
    are_counted(database)
    assert value(database, "select count(*) from shards where state = 'reading'") == 1


@pytest.mark.parametrize("commits", [1, 4, 9])
def test_what_was_stopped_ends_as_if_it_had_not_been(run: Path, tmp_path: Path, commits: int) -> None:
    whole, database = tmp_path / "whole.sqlite", tmp_path / "x.sqlite"
    stopped(commits, database, run)
    index(database, run)
    index(whole, run)
    assert dump(database) == dump(whole)


def test_what_came_is_known_not_to_be_read_to_its_end(run: Path, database: Path) -> None:
    index(database, run)
    append(run / STEPS.format(2, "all"), *[record(1000 + number) for number in range(30)])
    stopped(1, database, run)


def test_what_an_earlier_version_left_uncounted_is_counted_before_it_goes_on(run: Path, database: Path) -> None:
    stopped(2, database, run)
    connection = sqlite3.connect(database)
    connection.executescript(
        """
        delete from steps where trajectories > 0; delete from step_values;
        insert into steps (run_id, step, split) values (1, 1, 'train');
        """
    )
    connection.close()
    stopped(1, database, run)
