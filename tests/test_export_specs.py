"""What an export selects from: a moved index, rows of a table, runs of one index or of several, and a folder."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from rltracer_sqlite.export import ExportError, TableRows, TraceDataExporter, TraceRunSpec
from rltracer_sqlite.roots import RootNotAllowed, Roots
from tests.commands import rltracer
from tests.export_runs import chosen, export, funnel, indexed, inspect, rollout, spec, uids, write_steps
from tests.index_factory import make_index
from tests.indexing import index, rows, value


def test_an_index_that_moved_with_its_run_selects_the_same(tmp_path: Path) -> None:
    root = write_steps(tmp_path / "here" / "run", {1: [rollout(f"t{n}") for n in range(9)]})
    index(tmp_path / "here" / "x.sqlite", root)
    before = chosen(spec(tmp_path / "here" / "x.sqlite"))
    shutil.move(tmp_path / "here", tmp_path / "there")
    assert chosen(spec(tmp_path / "there" / "x.sqlite")) == before


def test_rows_of_a_table_restrict_the_selection_and_not_the_pass_rate(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a"), rollout("b", passed=False), rollout("c", "other")]})
    ids = dict(rows(database, "select uid, id from trajectories"))
    only = spec(database, only=TableRows("trajectories", [ids["a"]]))
    [row] = export(only, tmp_path / "o.jsonl", include_provenance=True)
    assert (row["trace_provenance"]["uid"], row["trace_provenance"]["prompt_pass_rate"]) == ("a", 0.5)
    group = value(database, "select prompt_group_id from trajectories where uid = 'c'")
    assert chosen(spec(database, only=TableRows("prompt_groups", [group]))) == ["c"]
    assert funnel(inspect(only))["rows of the table"] == 1


def test_runs_of_one_index_and_of_several(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_steps(tmp_path / name, {1: [rollout(f"{name}{n}") for n in range(3)]})
    index(tmp_path / "two.sqlite", tmp_path / "a")
    index(tmp_path / "two.sqlite", tmp_path / "b")
    index(tmp_path / "one.sqlite", tmp_path / "c")
    specs = [TraceRunSpec.from_index(tmp_path / "two.sqlite", name) for name in ("b", "a")]
    found = export([*specs, tmp_path / "one.sqlite"], tmp_path / "o.jsonl", per_prompt=1)
    assert [uid[0] for uid in uids(found)] == ["b", "a", "c"]
    for every in ([tmp_path / "two.sqlite"], TraceRunSpec.from_index(tmp_path / "two.sqlite")):
        assert [uid[0] for uid in uids(export(every, tmp_path / "o.jsonl", per_prompt=1))] == ["a", "b"]
    rltracer("export", tmp_path / "two.sqlite", "-o", tmp_path / "c.jsonl", "--per-prompt", 1)
    assert (tmp_path / "c.jsonl").read_bytes() == (tmp_path / "o.jsonl").read_bytes()
    with pytest.raises(ExportError, match=r"Which run .* It holds: a, b"):
        chosen(TraceRunSpec.from_index(tmp_path / "two.sqlite", name="one"))


def test_a_run_that_nobody_vouched_for_is_selected_from_but_not_read(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a")]})
    foreign = spec(database, roots=Roots([tmp_path / "elsewhere"]))
    assert chosen(foreign) == ["a"]
    with pytest.raises(RootNotAllowed):
        export(foreign, tmp_path / "o.jsonl")


def test_a_folder_is_indexed_for_the_asked_steps_only(tmp_path: Path, own_home: Path) -> None:
    root = write_steps(tmp_path / "run", {step: [rollout(str(step), f"q{step}")] for step in (1, 2, 3)})
    assert chosen(TraceRunSpec(root, step_start=2, step_end=2)) == ["2"]
    [cached] = (own_home / "cache").rglob("*.sqlite")
    assert rows(cached, "select distinct step from trajectories") == [(2,)]
    assert not list(root.rglob("*.sqlite"))


def test_the_name_of_a_run_can_be_given(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a")]})
    export(spec(database, name="mine"), tmp_path / "o.jsonl")
    told = json.loads((tmp_path / "o.jsonl.summary.json").read_text())
    assert [run["name"] for run in told["runs"]] == [window["run"] for window in told["windows"]] == ["mine"]


def test_a_damaged_index_is_a_sentence(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a")]})
    connection = sqlite3.connect(database)
    connection.execute("drop table prompts")
    connection.close()
    with pytest.raises(ExportError, match="cannot be read: no such table"):
        chosen(spec(database))


def test_what_has_no_split_is_said_to_be_among_what_counts_as_train(tmp_path: Path) -> None:
    rows = [{"reward": 1.0, "split": split, "step": step} for step, split in ((1, "train"), (2, None), (2, "eval"))]
    database = make_index(tmp_path / "x.sqlite", rows)
    said = {
        (None, None): "split train or none recorded, all steps",
        (2, 2): "split train or none recorded, step 2",
        (1, 1): "split train, step 1",
    }
    for (first, last), words in said.items():
        told = TraceDataExporter(TraceRunSpec(database, step_start=first, step_end=last)).inspect()
        assert told["available_of"].startswith(f"{words} of the run "), told["available_of"]
