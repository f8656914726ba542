"""An indexer that is killed at any moment leaves a consistent index, which the next run completes."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.counting import are_counted
from tests.faults.killing import killed
from tests.indexing import index, rows
from tests.layouts import append, message, trace

IMPORTS = """
from pathlib import Path
from rltracer_sqlite.sources.prime_rl import scan
from tests.indexing import index
scan.COMMIT_RECORDS = 7
"""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX systems")
EVERYTHING = """
    select t.uid, t.id, s.path, t.byte_offset, t.step, t.effective, t.success, g.trajectories
    from trajectories t join shards s on s.id = shard_id join prompt_groups g on g.id = t.prompt_group_id
    order by t.uid
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed") / "run"
    for step in (1, 2):
        for part in ("all", "effective"):
            records = [
                trace(
                    id=f"{step}-{number}",
                    messages=[message("user", f"question {number % 5}"), message("assistant", "yes")],
                    metrics={"correct_final_label": float(number % 2), f"m{number % 9}": 1.0},
                    rewards={"r": 1.0},
                )
                for number in range(40)
            ]
            append(folder / f"rollouts/step_{step}/train/{part}/traces.jsonl", *records)
    return folder


def consistent(database: Path) -> None:
    connection = sqlite3.connect(database)
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    assert connection.execute("pragma foreign_key_check").fetchall() == []
    if not connection.execute("select 1 from sqlite_master where name = 'shards'").fetchone():
        return  # killed before there was a schema
    beyond = """
        select count(*) from trajectories t join shards s on s.id = t.shard_id
        where t.byte_offset + t.byte_length > s.indexed_bytes and s.head_hash is not null
    """
    assert connection.execute(beyond).fetchone() == (0,)
    counted = """
        select count(*) from prompt_groups g
        where g.trajectories <> (select count(*) from trajectories t where t.prompt_group_id = g.id)
    """
    assert connection.execute(counted).fetchone() == (0,)
    records = """
        select count(*) from shards s where producer is null and s.head_hash is not null
        and records <> (select count(*) from trajectories t where t.shard_id = s.id)
    """
    assert connection.execute(records).fetchone() == (0,)
    connection.close()
    are_counted(database)


def interrupt(database: Path, run: Path, seed: int) -> None:
    """Index three times and kill each at a random moment; what is there must be consistent each time."""
    moment, kills = random.Random(seed), 0
    for _ in range(3):
        indexing = "index(Path(sys.argv[1]), Path(sys.argv[2]))"
        kills += killed(IMPORTS, indexing, moment.randint(2_000, 30_000), database, run)
        if database.exists() and database.stat().st_size:
            consistent(database)
    assert kills


def without_ids(database: Path) -> list[tuple[Any, ...]]:
    return [row[:1] + row[2:] for row in rows(database, EVERYTHING)]


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_indexer_leaves_a_consistent_index(run: Path, tmp_path: Path, seed: int) -> None:
    whole, database = tmp_path / "whole.sqlite", tmp_path / "x.sqlite"
    index(whole, run)
    interrupt(database, run, seed)
    index(database, run)
    consistent(database)
    assert without_ids(database) == without_ids(whole)


@pytest.mark.parametrize("seed", range(3))
def test_killed_while_reading_a_rewritten_run_again(run: Path, tmp_path: Path, seed: int) -> None:
    changed, whole, database = tmp_path / "run", tmp_path / "whole.sqlite", tmp_path / "x.sqlite"
    shutil.copytree(run, changed)
    index(database, changed)
    before = dict(rows(database, "select uid, id from trajectories"))
    for file in changed.rglob("traces.jsonl"):
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[::-2]))
    index(whole, changed)
    interrupt(database, changed, seed)
    index(database, changed)
    consistent(database)
    assert without_ids(database) == without_ids(whole)
    after = dict(rows(database, "select uid, id from trajectories"))
    assert {uid: before[uid] for uid in after} == after
