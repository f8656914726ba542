"""What commands answer where what was asked for cannot be had as it was asked: why, and what to type instead."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rltracer_sqlite import RLTracer
from rltracer_sqlite.browse.find import several_runs
from rltracer_sqlite.sources.base import LocatorError
from tests.commands import indexed as index
from tests.commands import rltracer, sentence
from tests.indexing import rows
from tests.layouts import append, message, seal, trace
from tests.table_answers import ms_swift, verl
from tests.table_conversations import chat
from tests.table_rows import write_lines
from tests.token_layouts import export_line, question, write_tokenizer

GOOD = trace([message("user", "6 * 7?"), message("assistant", "42")], id="good", rewards={"r": 1.0})
TRACES = "rollouts/step_1/train/all/traces.jsonl"


def test_a_folder_of_several_systems_is_not_read_as_a_run_of_one(tmp_path: Path) -> None:
    verl(tmp_path / "runs/big")
    ms_swift(tmp_path / "runs/other")
    said = sentence(index(tmp_path / "x.sqlite", tmp_path / "runs"))
    assert (
        f"{tmp_path}/runs holds runs of several systems: big (2 files, perhaps verl), other (1 file, ms-swift). Give"
        in said
    )
    assert said == sentence(index(tmp_path / "x.sqlite", tmp_path / "runs", "--watch"))
    assert not (tmp_path / "x.sqlite").exists()
    assert index(tmp_path / "x.sqlite", tmp_path / "runs/big", tmp_path / "runs/other").returncode == 0
    assert index(tmp_path / "y.sqlite", tmp_path / "runs", "--name", "one").returncode == 0
    assert rows(tmp_path / "y.sqlite", "select name, source from runs") == [("one", "verl")]


@pytest.mark.parametrize(
    ("files", "is_refused"),
    [
        (["a/rollout_data/1.jsonl", "b/rollout_data/1.jsonl"], True),
        (["a/completions.jsonl", "b/completions.jsonl"], True),
        (["a/rollout_data/1.jsonl", "b/rollout_data/2.jsonl"], False),  # a run that went on in another folder
        (["rollout_data/1.jsonl", "validation_data/1.jsonl"], False),
        (["sampled/1.jsonl", "checked/1.jsonl"], False),  # folders that a person named
    ],
)
def test_runs_of_one_system_are_not_merged_either(tmp_path: Path, files: list[str], is_refused: bool) -> None:
    for file in files:
        (tmp_path / "runs" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "runs" / file).touch()
    assert bool(several_runs(tmp_path / "runs")) == is_refused


RUNS, ONE = "holds", ""
DOUBT = "is read as one run, although"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ("run-a/1 run-b/1", RUNS),
        ("run-a/1 run-a/2 run-b/2", RUNS),
        ("lr1/sampled/1 lr2/sampled/1", RUNS),
        ("train-a/1 train-b/1 val-a/1 val-b/1", RUNS),
        ("math_val/1 code_val/1", RUNS),
        ("x/1.zst y/1", RUNS),
        ("a/1 b/2", ONE),  # a run that went on in another folder
        ("train/1 validation/1", ONE),
        ("samples/1 val_generations/1", ONE),
        ("anything/1 anything-test/1", ONE),
        ("rollout_data/1 validation_data/1 old/1", ONE),
        ("1 old/1", ONE),
        ("sampled/1 checked/1", DOUBT),
        ("generated/1 dump/1 last-val/1", DOUBT),
    ],
)
def test_folders_with_files_of_the_same_steps_may_be_splits(tmp_path: Path, files: str, said: str) -> None:
    verl(tmp_path / "written")
    for file in files.split():
        path = tmp_path / "runs" / f"{file.removesuffix('.zst')}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((tmp_path / "written/rollouts/3.jsonl").read_bytes())
        if file.endswith(".zst"):
            seal(path)
    done = index(tmp_path / "x.sqlite", tmp_path / "runs")
    if said == RUNS:
        assert "is no run, and holds" in sentence(done)
        assert "is no run, and holds" in sentence(rltracer("inspect", tmp_path / "runs"))
        done = index(tmp_path / "x.sqlite", tmp_path / "runs", "--name", "one")
    else:
        assert (said in done.stderr) if said else done.stderr == ""
    assert done.returncode == 0
    assert rows(tmp_path / "x.sqlite", "select count(*) from runs") == [(1,)]


def test_chats_in_files_with_numbers_are_no_runs(tmp_path: Path) -> None:
    for name in "ab":
        chat(tmp_path / "runs" / name)
        [file, *_] = (tmp_path / "runs" / name).glob("*.jsonl")
        file.rename(file.with_name("1.jsonl"))
    assert index(tmp_path / "x.sqlite", tmp_path / "runs").returncode == 0


def test_a_run_may_have_chats_beside_it(tmp_path: Path) -> None:
    verl(tmp_path / "run/first")
    chat(tmp_path / "run/data")
    assert index(tmp_path / "x.sqlite", tmp_path / "run").returncode == 0


@pytest.mark.parametrize("name", ["out.txt", "out.json", "out.JSON", "out.csv", "out.sqlite3"])
def test_rows_are_not_written_under_the_name_of_another_format(tmp_path: Path, name: str) -> None:
    append(tmp_path / "run" / TRACES, GOOD)
    assert index(tmp_path / "x.sqlite", tmp_path / "run").returncode == 0
    said = sentence(rltracer("export", tmp_path / "x.sqlite", "-o", tmp_path / name), 2)
    assert said.endswith(f"not as {Path(name).suffix}.")
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("chart", ["pass-rate", "reward", "zero-variance"])
def test_an_empty_chart_is_not_drawn(tmp_path: Path, chart: str) -> None:
    append(tmp_path / "run" / TRACES, trace([message("user", "?"), message("assistant", "!")], id="a"))
    write_lines(tmp_path / "chats/data.jsonl", {"messages": [message("user", "?")], "reward": 1.0})
    assert index(tmp_path / "x.sqlite", tmp_path / "run", tmp_path / "chats").returncode == 0
    drawn = "plot", tmp_path / "x.sqlite", chart, "-o", tmp_path / "chart.html", "--run"
    unscored = sentence(rltracer(*drawn, "run"))
    # Without its number every run of the index would have the other rule.
    another = f"rltracer success {tmp_path / 'x.sqlite'} 1 --rule 'PATH >= NUMBER' sets another rule."
    assert unscored == f"Nothing to draw: no trajectory of run records reward. {another}"
    assert sentence(rltracer(*drawn, "chats")) == "Nothing to draw: chats records no steps."
    assert not (tmp_path / "chart.html").exists()
    said = sentence(rltracer("inspect", tmp_path / "x.sqlite", "--run", "run", "--hardest"))
    rule = "No prompt is scored by the run's success rule, reward >= 1"
    assert said == f"{rule}: the only prompt has no reward. {another}"


def test_token_ids_without_a_tokenizer_are_told(tmp_path: Path) -> None:
    write_lines(tmp_path / "run/token_exports/step_1/rank_0.jsonl", export_line(question()))
    first = index(tmp_path / "x.sqlite", tmp_path / "run").stdout
    needed = "  tokens: the text of 1 trajectory needs a tokenizer: --tokenizer "
    assert f"{needed}PATH, a tokenizer.json or its folder\n" in first
    own = write_tokenizer(tmp_path / "run/tokenizer")
    assert f"{needed}{own}\n" in index(tmp_path / "x.sqlite", tmp_path / "run").stdout
    with_text = index(tmp_path / "x.sqlite", tmp_path / "run", "--tokenizer", own)
    assert with_text.returncode == 0
    assert "tokens:" not in with_text.stdout + index(tmp_path / "x.sqlite", tmp_path / "run").stdout


def test_what_has_no_text_is_told_wherever_the_state_of_a_run_is(tmp_path: Path) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    write_lines(run / "token_exports/step_1/rank_0.jsonl", *(export_line(question()) for _ in range(2)))
    append(tmp_path / "other" / TRACES, GOOD)
    needed = "the text of 2 trajectories needs a tokenizer: "
    own = write_tokenizer(tmp_path / "tokenizer")
    for options, state in (
        ((), f"read to the end, {needed}rltracer-index --tokenizer PATH"),
        (("--tokenizer", own), ""),
    ):
        assert index(database, run, tmp_path / "other", *options).returncode == 0
        told = [json.loads(line) for line in rltracer("runs", database, "--json").stdout.splitlines()]
        assert {one["run"]: one["state"] for one in told} == {
            "run": state or "read completely",
            "other": "read completely",
        }
        in_list = rltracer("runs", database).stdout
        assert f"  1  run: 2 trajectories, {state.replace(', ', chr(10) + 5 * ' ') or 'read completely'}\n" in in_list
        said = rltracer("inspect", database, "--run", "run").stderr
        assert said == (f"run: {needed}rltracer-index --tokenizer PATH.\n" if state else "")
        assert rltracer("inspect", database, "--run", "other").stderr == ""
    assert rltracer("inspect", run, "--step", 1).stderr == f"run: {needed}--tokenizer PATH.\n"
    assert rltracer("inspect", run, "--step", 1, "--tokenizer", own).stderr == ""


@pytest.mark.parametrize(("faulty", "which"), [((1,), " --run b"), ((0, 1), "")])
def test_the_command_that_is_named_lists_all_problems(tmp_path: Path, faulty: tuple[int, ...], which: str) -> None:
    runs = [tmp_path / "a", tmp_path / "b"]
    for number, run in enumerate(runs):
        append(run / TRACES, GOOD)
        if number in faulty:
            append(run / TRACES, None, dump=lambda _: b"{no json\n")
    said = index(tmp_path / "x.sqlite", *runs).stdout
    assert f"  rltracer inspect {tmp_path}/x.sqlite{which} --problems\n" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--target", "0"], "--target is 0: a limit is a whole number from 1 on."),
        (["--window", "-2"], "--window is -2: a limit is a whole number from 1 on."),
        (["--min-pass-rate", "25"], "--min-pass-rate is 25.0: a pass rate lies between 0 and 1."),
        (["--mode", "rl"], "give its --rl-data, or take the prompts from the traces with --rl-from-trace."),
        (["--margin", "0.5"], "--margin is of preference pairs: it goes with --mode preference."),
    ],
)
def test_an_export_speaks_of_its_options(tmp_path: Path, options: list[str], said: str) -> None:
    append(tmp_path / "run" / TRACES, GOOD)
    assert index(tmp_path / "target_count.sqlite", tmp_path / "run").returncode == 0
    done = rltracer("export", tmp_path / "target_count.sqlite", "-o", tmp_path / "rows.jsonl", *options)
    assert sentence(done, done.returncode).endswith(said)
    assert done.returncode in (1, 2)


def test_a_chart_has_its_name_from_addresses_too(tmp_path: Path) -> None:
    append(tmp_path / "run" / TRACES, GOOD)
    assert index(tmp_path / "x.sqlite", tmp_path / "run").returncode == 0
    for name in ("pass_rate", "pass-rate"):
        assert rltracer("plot", tmp_path / "x.sqlite", name, "-o", tmp_path / f"{name}.html").returncode == 0
    assert (tmp_path / "pass_rate.html").read_bytes() == (tmp_path / "pass-rate.html").read_bytes()


def test_what_is_not_scored_is_always_told(tmp_path: Path) -> None:
    append(tmp_path / "run" / TRACES, GOOD, trace([message("user", "?"), message("assistant", "!")], id="b"))
    said = index(tmp_path / "x.sqlite", tmp_path / "run").stdout
    assert "run: 2 trajectories, 1 unscored, " in said
    assert "  unscored: 1 trajectory without reward\n" in said


def test_roots_that_are_gone_are_told_and_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLTRACER_HOME", str(tmp_path / "home"))
    for name in ("kept", "gone"):
        append(tmp_path / name / TRACES, GOOD)
        assert index(tmp_path / "x.sqlite", tmp_path / name).returncode == 0
    assert rltracer("roots").stderr == ""
    shutil.rmtree(tmp_path / "gone")
    assert rltracer("roots").stderr.startswith("One of them is not there now; rltracer roots prune takes")
    assert rltracer("roots", "prune").stdout == f"{tmp_path}/gone\n"
    assert rltracer("roots") == (0, f"{tmp_path}/kept\n", "")


def test_a_trajectory_is_loaded_by_its_id(tmp_path: Path) -> None:
    append(tmp_path / "run" / TRACES, GOOD, trace([message("user", "?"), message("assistant", "!")], id="b"))
    assert index(tmp_path / "x.sqlite", tmp_path / "run").returncode == 0
    run = RLTracer(tmp_path / "x.sqlite")
    assert run.trajectory(2).load().metadata["uid"] == "b"
    with pytest.raises(LocatorError, match="no trajectory 3"):
        run.trajectory(3).load()
