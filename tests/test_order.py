"""What an index says depends on the files alone, not on the order in which they were written or read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.adapter import open_run
from rltracer_sqlite.index import columns
from tests.indexing import index, rows, value
from tests.layouts import append, line, message, trace

ALL, EFFECTIVE = "rollouts/step_{}/train/all/traces.jsonl", "rollouts/step_{}/train/effective/traces.jsonl"
ORCH = "monitors/file/traces/annotations/orch/{:05d}.jsonl"


def record(uid: str, advantage: float | None = None, metrics: dict[str, Any] | None = None) -> dict[str, Any]:
    said = [message("user", "6 * 7?"), message("assistant", "42")]
    info = {} if advantage is None else {"advantage": advantage}
    return trace(said, id=uid, rewards={"r": 1.0}, info=info, metrics=metrics or {})


def rewrite(path: Path, *records: Any) -> None:
    path.write_bytes(b"".join(line(one) for one in records))
    os.utime(path, ns=(path.stat().st_mtime_ns + 10**9,) * 2)


def only_step(number: int) -> Callable[[int | None], bool]:
    return lambda step: step in (number, None)


def test_steps_read_out_of_order_give_the_same_rows(run: Path, database: Path) -> None:
    append(run / ALL.format(1), record("a"), record("b"))
    append(run / EFFECTIVE.format(2), record("a", 0.5))
    index(database, run, steps=only_step(2))
    index(database, run)
    assert rows(database, "select uid, step, effective, advantage, ship_step from trajectories order by uid") == [
        ("a", 1, 1, 0.5, 2),
        ("b", 1, None, None, None),
    ]


def test_a_step_counts_the_rows_that_are_in_it(run: Path, database: Path) -> None:
    append(run / ALL.format(1), record("a"))
    append(run / EFFECTIVE.format(2), record("a"))
    index(database, run, steps=only_step(2))
    index(database, run)
    assert rows(database, "select step, trajectories from steps order by step") == [(1, 1), (2, 0)]


def test_the_latest_annotation_counts_whichever_was_read_first(run: Path, database: Path) -> None:
    append(run / ALL.format(1), record("a"))
    append(run / EFFECTIVE.format(3), record("a", 0.75))
    index(database, run)
    append(run / EFFECTIVE.format(2), record("a", 0.25))
    index(database, run)
    assert value(database, "select advantage from trajectories") == 0.75


def test_what_the_record_says_counts_again_without_the_annotation(run: Path, database: Path) -> None:
    append(run / ALL.format(1), record("a", 0.125))
    append(run / EFFECTIVE.format(2), record("a", 0.5))
    index(database, run)
    rewrite(run / EFFECTIVE.format(2), record("b"))
    index(database, run)
    found = rows(database, "select advantage, effective, ship_step from trajectories where uid = 'a'")
    assert found == [(0.125, None, None)]


def test_the_annotation_before_counts_again(run: Path, database: Path) -> None:
    append(run / ALL.format(1), record("a"))
    for chunk, advantage in enumerate((0.25, 0.75)):
        append(run / ORCH.format(chunk), {"trace_id": "a", "info": {"advantage": advantage}, "branches": []})
    index(database, run)
    rewrite(run / ORCH.format(1), {"trace_id": "x", "info": {"advantage": 0.0}, "branches": []})
    index(database, run)
    assert value(database, "select advantage from trajectories") == 0.25


@pytest.mark.parametrize(("before", "after"), [("a", "z"), ("z", "a")])
def test_a_folder_that_was_renamed_keeps_its_trajectories(run: Path, database: Path, before: str, after: str) -> None:
    append(run / before / ALL.format(1), record("a"))
    index(database, run)
    (run / before).rename(run / after)
    index(database, run)
    assert rows(database, "select uid, gone from trajectories") == [("a", 0)]
    assert value(database, "select count(*) from problems") == 0
    assert len(open_run(database).load_trajectory(1).messages) == 2


def test_a_record_in_two_files_outlives_one_of_them(run: Path, database: Path) -> None:
    append(run / ALL.format(1), record("a"))
    append(run / ALL.format(2), record("a"))
    index(database, run)
    rewrite(run / ALL.format(2), record("b"))
    index(database, run)
    assert rows(database, "select uid from trajectories order by uid") == [("a",), ("b",)]


def test_an_id_that_stands_again_later_is_told(run: Path, database: Path) -> None:
    append(run / ALL.format(1), record("a"))
    index(database, run)
    append(run / ALL.format(1), record("a"))
    index(database, run)
    assert value(database, "select count(*) from trajectories") == 1
    assert value(database, "select count(*) from problems") == 1


def test_the_default_rule_is_that_of_the_records(run: Path, database: Path) -> None:
    append(run / ALL.format(1), record("a", metrics={"correct_final_label": 1.0}))
    append(run / ALL.format(2), record("b"))
    index(database, run)
    rewrite(run / ALL.format(1), record("a"))
    index(database, run)
    assert value(database, "select success_path from runs") == "reward"
    assert value(database, "select count(success) from trajectories") == 2


def test_no_record_can_ask_for_more_columns_than_there_are(
    run: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tenth of the real limits: each column that is made or dropped makes SQLite read its schema again.
    monkeypatch.setattr(columns, "MAX_COLUMNS", 20)
    monkeypatch.setattr(columns, "MAX_PATHS", 200)
    for step in range(11):
        # Half of the columns of the step before are dropped, since a long text cannot be kept; their places are free.
        long = {f"m{step - 1}_{number}": "x" * 300 for number in range(0, 20, 2)}
        append(run / ALL.format(step), record(f"t{step}", metrics=long | {f"m{step}_{n}": 1.0 for n in range(20)}))
    index(database, run)
    assert value(database, "select count(*) from trajectories") == 11
    assert value(database, "select count(*) from pragma_table_xinfo('trajectories') where name like 'metric_%'") <= 20
    assert value(database, "select count(*) from fields") <= 200
