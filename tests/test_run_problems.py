"""The view run_problems: what could not be read, with its run and its file."""

from __future__ import annotations

from pathlib import Path

from tests.commands import indexed
from tests.export_runs import rollout, write_steps
from tests.indexing import dump, index, made_before, rows
from tests.layouts import append

FOUND = "select run_id, run, step, file, line, reason, problem_id from run_problems order by problem_id"


def make(tmp_path: Path) -> tuple[Path, Path]:
    """Return an index of two runs, each with a problem, and the first run."""
    runs = [write_steps(tmp_path / name, {step: [rollout("a")]}) for name, step in (("one", 1), ("two", 2))]
    for run, step in zip(runs, (1, 2), strict=True):
        append(run / f"rollouts/step_{step}/train/all/traces.jsonl", {"no": "rollout"})
    indexed(tmp_path / "x.sqlite", *runs)
    return tmp_path / "x.sqlite", runs[0]


def test_it_has_the_problems_of_each_run(tmp_path: Path) -> None:
    database, _ = make(tmp_path)
    [first, second] = rows(database, "select id, reason from problems order by id")
    file = "rollouts/step_{}/train/all/traces.jsonl"
    assert rows(database, FOUND) == [
        (1, "one", 1, file.format(1), 2, first[1], first[0]), (2, "two", 2, file.format(2), 2, second[1], second[0])
    ]  # fmt: skip


def test_an_index_from_before_gets_it_when_it_is_written_to_next(tmp_path: Path) -> None:
    database, run = make(tmp_path)
    found, view = rows(database, FOUND), "select sql from sqlite_master where name = 'run_problems'"
    made = rows(database, view)
    made_before("m004_run_problems", database)
    assert not any("run_problems" in line for line in dump(database))
    index(database, run)
    assert (rows(database, view), rows(database, FOUND)) == (made, found)
