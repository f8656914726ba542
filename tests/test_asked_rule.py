"""A success rule that an indexing is asked for and that scores nothing: the run keeps the rule that it had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import indexed
from tests.indexing import dump, rows
from tests.layouts import append, message, trace

FILE = "step_{}/train/all/traces.jsonl"
RULE = "select success_path, success_threshold, success_chosen from runs order by name"
NAMED = "The rule rewrd >= 1 scores 0 of {} of {}: none has a number at rewrd."


def write(run: Path, step: int, **metrics: float) -> Path:
    """Add a step of one trajectory, whose reward is 1, to a run."""
    said = [message("user", f"q{step}"), message("assistant", "a")]
    record = trace(said, id=f"{run.name}-{step}", rewards={"correct": 1.0}, metrics=metrics)
    append(run / FILE.format(step), record)
    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write(tmp_path / "run", 1)


@pytest.mark.parametrize("asked", [[], ["--success", "reward>=0.5"]], ids=["default", "chosen"])
@pytest.mark.parametrize("label", [{}, {"correct_final_label": 1.0}], ids=["reward", "label"])
def test_the_index_is_what_it_was_but_for_new_rows(tmp_path: Path, asked: list[str], label: dict[str, float]) -> None:
    run, databases = write(tmp_path / "run", 1, **label), [tmp_path / "x.sqlite", tmp_path / "y.sqlite"]
    for database in databases:
        assert indexed(database, run, *asked).returncode == 0
    write(run, 2, **label)
    done = indexed(databases[0], run, "--success", "rewrd>=1")
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {NAMED.format('2 trajectories', 'run')}")
    indexed(databases[1], run)
    assert dump(databases[0]) == dump(databases[1])
    assert f"The rule stays {'{} >= {:g}'.format(*rows(databases[0], RULE)[0][:2])}." in done.stderr


@pytest.mark.parametrize("label", [{}, {"correct_final_label": 1.0}], ids=["reward", "label"])
def test_a_new_run_has_its_default(tmp_path: Path, label: dict[str, float]) -> None:
    run, databases = write(tmp_path / "run", 1, **label), [tmp_path / "x.sqlite", tmp_path / "y.sqlite"]
    assert [indexed(databases[0], run, "--success", "rewrd>=1").returncode, indexed(databases[1], run).returncode] == [
        1,
        0,
    ]
    assert dump(databases[0]) == dump(databases[1])


def test_of_several_runs_each_is_judged_by_itself(run: Path, tmp_path: Path) -> None:
    other, database = write(tmp_path / "other", 1, tests=1.0), tmp_path / "x.sqlite"
    done = indexed(database, run, other, "--success", "metrics.tests>=1")
    assert done.returncode == 1
    assert rows(database, RULE) == [("metrics.tests", 1.0, 1), ("reward", 1.0, 0)]
    assert done.stderr.count("Error: ") == 1
    assert f"rltracer success {database} run --rule 'PATH >= NUMBER'" in done.stderr
    done = indexed(database, run, other, "--success", "rewrd>=1")
    assert [line.split(": ")[0] for line in done.stderr.splitlines()].count("Error") == 2
    assert "The rule stays metrics.tests >= 1." in done.stderr
    assert "The rule stays reward >= 1." in done.stderr


@pytest.mark.parametrize("old", ["reward>=0.5", None])
def test_a_rebuilt_run_has_the_rule_that_it_had(run: Path, tmp_path: Path, old: str | None) -> None:
    database = tmp_path / "x.sqlite"
    indexed(database, run, *(["--success", old] if old else []))
    before = rows(database, RULE)
    write(run, 2)
    assert indexed(database, run, "--rebuild", "--success", "rewrd>=1").returncode == 1
    assert (rows(database, RULE), rows(database, "select sum(success) from trajectories")) == (before, [(2,)])


def test_what_is_read_now_may_be_what_the_rule_scores(run: Path, tmp_path: Path) -> None:
    indexed(tmp_path / "x.sqlite", run)
    write(run, 2, tests=1.0)
    assert indexed(tmp_path / "x.sqlite", run, "--success", "metrics.tests>=1").returncode == 0
    assert rows(tmp_path / "x.sqlite", RULE) == [("metrics.tests", 1.0, 1)]
    assert rows(tmp_path / "x.sqlite", "select sum(success) from trajectories") == [(1,)]


def test_a_discovered_run_has_the_rule_until_it_is_read(run: Path, tmp_path: Path) -> None:
    """Then it is refused, and the default is what the run had before it was asked for."""
    for code, more in ((0, ["--discover"]), (1, [])):
        assert indexed(tmp_path / "x.sqlite", run, "--success", "rewrd>=1", *more).returncode == code
    assert rows(tmp_path / "x.sqlite", RULE) == [("reward", 1.0, 0)]
