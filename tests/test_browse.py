"""Runs below a folder: found by names alone, confined to the folder, and read one step at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rltracer_sqlite.browse import RunFolder, find_runs, needs_reading, parse_step, run_folder_path, run_steps
from rltracer_sqlite.browse.process import safe_environment
from rltracer_sqlite.browse.read import read_step
from rltracer_sqlite.index.database import open_index
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import SourceError
from tests.indexing import index, rows, value
from tests.layouts.records import message, trace
from tests.small_runs import touch, write_step


def found(root: Path) -> dict[str, RunFolder]:
    return {run.path: run for run in find_runs(root).runs}


@pytest.mark.parametrize(
    ("files", "runs"),
    [
        (["a/rollouts/step_1/train/all/traces.jsonl", "b/rollouts/step_2/train/all/traces.jsonl"], {"a", "b"}),
        (["x/a/run_default/rollouts/step_1/eval/all/traces.jsonl"], {"x/a"}),
        (["outputs/a/run_default/rollouts/step_1/train/all/traces.jsonl", "outputs/b/rollouts/step_1/rank_0.bin"],
         {"outputs/a", "outputs/b"}),
        (["a/outputs/evals/math--qwen/1f/results.jsonl", "a/outputs/evals/code--qwen/2e/results.jsonl"], {"a"}),
        (["a/monitors/file/traces/stream/00000.jsonl.zst"], {"a"}),
        (["a/monitors/file/traces/annotations/orch/00000.jsonl"], {"a"}),
        (["a/token_exports/step_3/rank_0.jsonl"], {"a"}),
        (["rollouts/step_1/train/all/traces.jsonl"], {"."}),
        (["step_1/train/all/traces.jsonl"], {"."}),
        (["train/a/rollouts/step_1/train/all/traces.jsonl"], {"train/a"}),
        (["verl/exp/rollout_data/1.jsonl"], {"verl/exp"}),
        (["a/weights/step_1/rank_0.bin", "a/model.bin", "a/data.parquet", ".hidden/step_1/rank_0.bin"], set()),
        ([], set()),
    ],
)  # fmt: skip
def test_runs_are_found_by_the_names_of_their_files(tmp_path: Path, files: list[str], runs: set[str]) -> None:
    touch(tmp_path, *files)
    assert set(found(tmp_path)) == runs


@pytest.mark.parametrize(
    ("files", "runs"),
    [
        (["a/rollout_data/1.jsonl", "a/rollout_data/2.jsonl", "a/validation_data/2.jsonl"], [("a", {1, 2}, False)]),
        (["a/completions/completions_00010.parquet", "a/completions/completions_00020.parquet"],
         [("a", {10, 20}, True)]),
        (["trial/rollout/1/13.jsonl", "trial/rollout/2/14.jsonl", "trial/eval-rollout/3/3.jsonl"],
         [("trial", {1, 2, 3}, True)]),
        (["a/exports/dumped_evals/global_step_0_evals/x.jsonl", "a/exports/dumped_evals/global_step_5_evals/x.jsonl",
          "a/exports/dumped_evals/eval_only/x.jsonl"], [("a", {0, 5}, True)]),
        (["logs/exp/train_data_step1.jsonl", "logs/exp/val_data_step0.jsonl"], [("logs/exp", {0, 1}, True)]),
        (["dump/rollout_dump_data.step_3.jsonl"], [("dump", {3}, True)]),
        (["a/monitors/file/traces/stream/00003.jsonl"], [("a", set(), True)]),
    ],
)  # fmt: skip
def test_runs_of_other_systems_are_one_with_the_steps_of_their_names(
    tmp_path: Path, files: list[str], runs: list[tuple[str, set[int], bool]]
) -> None:
    touch(tmp_path, *files)
    assert [(run.path, run.steps, run.is_known) for run in find_runs(tmp_path).runs] == runs


def test_a_folder_inside_a_run_of_another_system_stands_for_it(tmp_path: Path) -> None:
    touch(tmp_path, "trial/rollout/1/13.jsonl", "trial/rollout/2/14.jsonl")
    assert {run.path: run.steps for run in find_runs(tmp_path / "trial/rollout").runs} == {".": {1, 2}}


@pytest.mark.parametrize(
    ("file", "run", "what"),
    [
        ("logs/2026_toy.eval", "logs", "Inspect AI logs"),
        ("a/dump_details/rollout_data/eval_1.pt", "a", "rollouts of slime or miles"),
        ("jobs/now/task__x/agent/trajectory.json", "jobs/now", "trials of Harbor"),
        ("offline-run-1/files/media/table/val/x.table.json", "offline-run-1", "tables of W&B"),
        ("a/dapo_rollout_summaries.jsonl", "a", "rollout summaries of the Tinker cookbook"),
        ("a/x.traj", "a", "trajectories of SWE-agent"),
    ],
)
def test_what_is_known_and_not_read_is_listed_as_such(tmp_path: Path, file: str, run: str, what: str) -> None:
    touch(tmp_path, file, "z/rollouts/step_1/train/all/traces.jsonl")
    assert [(one.path, one.unread) for one in find_runs(tmp_path).runs] == [("z", ""), (run, what)]


def test_a_run_has_its_steps_files_and_size(tmp_path: Path) -> None:
    touch(tmp_path, *(f"a/rollouts/step_{step}/train/all/traces.jsonl" for step in (1, 2, 10)), "a/notes.jsonl")
    run = found(tmp_path)["a"]
    assert (run.steps, run.files, run.bytes, run.is_known) == ({1, 2, 10}, 4, 4 * 12, True)
    assert find_runs(tmp_path).is_all


def test_no_file_is_opened(tmp_path: Path) -> None:
    file = write_step(tmp_path / "a", 1, "x")
    file.chmod(0)
    before = file.stat().st_atime_ns
    assert set(found(tmp_path)) == {"a"}
    assert file.stat().st_atime_ns == before


def test_known_runs_come_first_then_the_newest(tmp_path: Path) -> None:
    touch(tmp_path, "perhaps/data.jsonl", "old/step_1/rank_0.bin", "new/step_1/rank_0.bin")
    for number, name in enumerate(("old/step_1/rank_0.bin", "new/step_1/rank_0.bin", "perhaps/data.jsonl")):
        os.utime(tmp_path / name, (number, number))
    assert [run.path for run in find_runs(tmp_path).runs] == ["new", "old", "perhaps"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    touch(tmp_path, "outside/rollouts/step_1/train/all/traces.jsonl")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "linked").symlink_to(tmp_path / "outside")
    (inside / "loop").symlink_to(inside)
    (inside / "file.jsonl").symlink_to(tmp_path / "outside/rollouts/step_1/train/all/traces.jsonl")
    assert found(inside) == {}


def test_only_so_many_files_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, *(f"a/step_{step}/rank_0.bin" for step in range(9)))
    monkeypatch.setattr("rltracer_sqlite.browse.find.MOST_FILES", 4)
    result = find_runs(tmp_path)
    assert (result.is_all, result.files, result.runs[0].files) == (False, 4, 4)


def test_a_single_file_is_a_run(tmp_path: Path) -> None:
    touch(tmp_path, "one.jsonl", "other.jsonl")
    [run] = find_runs(tmp_path / "one.jsonl").runs
    assert (run.path, run.files) == (".", 1)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        find_runs(tmp_path / "nothing")


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../outside",
        "a/../../outside",
        "/etc",
        "",
        "a\0b",
        "link",
        "link/deeper",
        "loop",
        "nothing",
        "a/../../root2",
    ],
)
def test_no_path_leads_out(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    for folder in (root / "a", tmp_path / "outside/deeper", tmp_path / "root2"):
        folder.mkdir(parents=True)
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root / "loop")
    with pytest.raises(SourceError, match="no such run"):
        run_folder_path(root, path)


@pytest.mark.parametrize("path", [".", "a", "a/b", "inner"])
def test_paths_inside_lead_to_folders(tmp_path: Path, path: str) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "inner").symlink_to(tmp_path / "a")
    assert run_folder_path(tmp_path, path).is_relative_to(tmp_path.resolve())


@pytest.mark.parametrize(("text", "step"), [("0", 0), ("12", 12), ("none", None)])
def test_steps_in_addresses(text: str, step: int | None) -> None:
    assert parse_step(text) == step


@pytest.mark.parametrize("text", ["", "-1", "x", "1e3", "٣", "9" * 16, " 1", "all"])
def test_what_is_no_step(text: str) -> None:
    with pytest.raises(ValueError, match="not a step"):
        parse_step(text)


def test_a_step_is_read_and_no_other(tmp_path: Path) -> None:
    for step in (1, 2):
        write_step(tmp_path / "run", step, "a", "b")
    database, run = tmp_path / "x.sqlite", tmp_path / "run"
    source = source_for(run)
    assert [(files.step, files.files) for files in run_steps(source, run)] == [(1, 1), (2, 1)]
    read_step(database, run, "2", "my run")
    assert rows(database, "select distinct step from trajectories") == [(2,)]
    assert value(database, "select name from runs") == "my run"
    connection = open_index(database)
    assert [needs_reading(connection, source, run, step) for step in ("1", "2", "all")] == [True, False, True]
    connection.close()


def test_a_step_that_has_grown_needs_reading_again(tmp_path: Path) -> None:
    file = write_step(tmp_path / "run", 1, "a")
    read_step(tmp_path / "x.sqlite", tmp_path / "run", "all")
    with file.open("a") as out:
        out.write(json.dumps(trace([message("user", "b")], id="b")) + "\n")
    connection = open_index(tmp_path / "x.sqlite")
    assert needs_reading(connection, source_for(tmp_path / "run"), tmp_path / "run", "1")
    connection.close()


def test_the_name_of_a_known_run_stays(tmp_path: Path) -> None:
    write_step(tmp_path / "run", 1, "a")
    index(tmp_path / "x.sqlite", tmp_path / "run")
    read_step(tmp_path / "x.sqlite", tmp_path / "run", "1", "another name")
    assert value(tmp_path / "x.sqlite", "select name from runs") == "run"


def read_in_a_process(*arguments: object) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "rltracer_sqlite.browse.read", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=safe_environment(), check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_process_says_how_far_it_is(tmp_path: Path) -> None:
    file = write_step(tmp_path / "run", 1, "a", "b")
    said = read_in_a_process(tmp_path / "x.sqlite", tmp_path / "run", "1", "--fts")
    size = file.stat().st_size
    assert said[-2:] == [{"read": size, "total": size}, {"done": True}]
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories_text_digests") == 2


def test_the_process_says_what_is_wrong(tmp_path: Path) -> None:
    touch(tmp_path, "run/notes.txt")
    [said] = read_in_a_process(tmp_path / "x.sqlite", tmp_path / "run", "1")
    assert "holds no rollouts" in str(said["error"])


@pytest.mark.threat("T7")
def test_a_module_in_the_current_folder_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("Python 3.10 cannot leave the current folder out")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "json.py").write_text("raise SystemExit('taken')")
    command = [sys.executable, "-m", "rltracer_sqlite.browse.read", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env=safe_environment(), cwd=tmp_path, check=False)
    assert (done.returncode, "taken" in done.stderr) == (0, False)
