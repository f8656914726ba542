"""Indexes that a new database gets once it is filled: they are there in the end, also after an interruption."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite.index import late
from tests.indexing import dump, index, rows
from tests.layouts import append, message, trace

ALL = "rollouts/step_1/train/all/traces.jsonl"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    said = [message("user", "why?"), message("assistant", "so")]
    for step in (1, 2):
        records = [trace(said, id=f"{step}-{number}") for number in range(9)]
        append(tmp_path / "run" / ALL.replace("step_1", f"step_{step}"), *records)
    return tmp_path / "run"


def indexes(database: Path) -> set[tuple[str, str]]:
    return set(rows(database, "select name, sql from sqlite_master where type = 'index' and tbl_name = 'trajectories'"))


def content(database: Path) -> list[str]:
    return [statement for statement in dump(database) if "INDEX" not in statement.upper()]


def test_a_large_run_ends_with_the_same_database(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index(tmp_path / "small.sqlite", run)
    monkeypatch.setattr(late, "MANY", 0)
    index(tmp_path / "large.sqlite", run)
    assert indexes(tmp_path / "large.sqlite") == indexes(tmp_path / "small.sqlite")
    assert {name for name, _ in indexes(tmp_path / "large.sqlite")} > late.NAMES
    assert content(tmp_path / "large.sqlite") == content(tmp_path / "small.sqlite")


@pytest.mark.parametrize("is_last", [True, False])
def test_what_an_interruption_left_out_is_made_up_for(
    is_last: bool, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(read: int, total: int) -> None:
        if not is_last or read == total:
            raise KeyboardInterrupt

    index(tmp_path / "whole.sqlite", run)
    monkeypatch.setattr(late, "MANY", 0)
    database = tmp_path / "x.sqlite"
    with pytest.raises(KeyboardInterrupt):
        index(database, run, progress=interrupt)
    assert not late.NAMES & {name for name, _ in indexes(database)}
    index(database, run)
    assert indexes(database) == indexes(tmp_path / "whole.sqlite")


def test_a_database_with_rows_keeps_its_indexes(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "MANY", 0)
    database = tmp_path / "x.sqlite"
    index(database, run)
    append(run / ALL, trace([message("user", "and?"), message("assistant", "well")], id="more"))
    before = indexes(database)

    def check(read: int, total: int) -> None:
        assert indexes(database) == before

    assert index(database, run, progress=check).read_shards == 1
