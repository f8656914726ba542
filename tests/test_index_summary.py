"""What `rltracer-index` says of runs that are amiss, of what it scored, and of what to type next."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite.browse.find import several_runs
from tests.commands import indexed, rltracer, sentence
from tests.indexing import rows, value
from tests.layouts import append, message, trace
from tests.layouts.episodes import write_j2
from tests.small_runs import GOOD, TRACES, make_run


def test_episodes_without_a_trace_are_rows_and_counted(tmp_path: Path) -> None:
    expected = write_j2(tmp_path / "run")
    assert expected.failed_episodes == 1
    done = indexed(tmp_path / "x.sqlite", tmp_path / "run")
    assert "  no trace: 1 episode failed before any agent ran, and is a row without turns\n" in done.stdout
    found = rows(tmp_path / "x.sqlite", "select uid, success from trajectories where turns = 0 and uid = episode_id")
    assert found == [(expected.failed[0], None)]
    (tmp_path / "good").mkdir()
    assert "no trace" not in indexed(tmp_path / "y.sqlite", make_run(tmp_path / "good")).stdout


def test_a_reward_of_several_parts_is_told_with_a_rule_by_one_of_them(tmp_path: Path) -> None:
    parts = {"accuracy": 0.0, "format": 1.0}  # the format alone makes the wrong answer pass
    append(tmp_path / "run/rollouts" / TRACES.format(1), {**GOOD, "rewards": parts, "metrics": {}})
    said = indexed(tmp_path / "x.sqlite", tmp_path / "run").stdout
    assert (
        "  success: reward >= 1\n  rewards: accuracy and format; the rule is on what they make together, not on each\n"
        in said
    )
    [rule] = [line.partition("--success ")[2] for line in said.splitlines() if "by one of them alone" in line]
    assert rule == "'rewards.accuracy.score >= 1'"
    assert value(tmp_path / "x.sqlite", "select success from trajectories") == 1
    again = indexed(tmp_path / "x.sqlite", tmp_path / "run", "--success", rule.strip("'")).stdout
    assert value(tmp_path / "x.sqlite", "select success from trajectories") == 0
    assert "rewards:" not in again
    make_run(tmp_path / "other")
    assert "rewards:" not in indexed(tmp_path / "x.sqlite", tmp_path / "other").stdout


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 3, 2)])
def test_bad_runs_are_named_and_good_ones_indexed(tmp_path: Path, order: tuple[int, ...]) -> None:
    (tmp_path / "empty").mkdir()
    runs = [make_run(tmp_path / "good"), tmp_path / "empty", tmp_path / "gone", make_run(tmp_path / "good2")]
    done = indexed(tmp_path / "x.sqlite", *(runs[number] for number in order))
    assert done.returncode == 1
    said = {f"Error: The folder {runs[1]} holds no files.", f"Error: The file or folder {runs[2]} does not exist."}
    assert set(done.stderr.splitlines()) == said
    assert "good: 1 trajectory, 1 prompt group, 1 step, 0 problems" in done.stdout
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories") == 2


def test_a_folder_of_runs_is_not_merged_into_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_run(tmp_path / "runs" / name, 1, 2)
    done = indexed(tmp_path / "x.sqlite", tmp_path / "runs")
    assert done.returncode == 1
    assert (
        f"is no run, and holds 2 of them: a (2 files, prime-rl), b (2 files, prime-rl). Give {tmp_path}/runs/* instead"
        in done.stderr
    )
    assert "rltracer serve --browse-root" in done.stderr
    assert not (tmp_path / "x.sqlite").exists()
    assert "holds 2 of them" in sentence(indexed(tmp_path / "x.sqlite", tmp_path / "runs", "--watch"))
    for _ in range(2):  # what is indexed so can be read on without its name
        assert indexed(tmp_path / "x.sqlite", tmp_path / "runs", *([] if _ else ["--name", "one"])).returncode == 0
    assert "Give one of them instead" in sentence(rltracer("inspect", tmp_path / "runs"))
    for line in (["inspect", tmp_path / "runs"], ["analyze", tmp_path / "runs", "-o", tmp_path / "analysis"]):
        assert "holds 2 of them: a (2 files, prime-rl), b" in sentence(rltracer(*line))


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["a/rollouts/step_1/train/all/traces.jsonl", "b/step_1/train/all/traces.jsonl"], ["a", "b"]),
        (["a/traces/stream/00000.jsonl", "b/monitors/file/traces/stream/00000.jsonl.zst"], ["a", "b"]),
        (["x/a/step_0/rank_0.bin", "y/b/step_0/rank_0.bin"], ["x/a", "y/b"]),
        # One run in several folders: its steps, its ranks, its splits, its parts, its evaluations, an old copy in it.
        (["step_1/train/all/traces.jsonl", "step_2/train/all/traces.jsonl"], []),
        (["early/step_1/train/all/traces.jsonl", "late/step_2/train/all/traces.jsonl"], []),
        (["node_0/token_exports/step_1/rank_0.jsonl", "node_1/token_exports/step_1/rank_1.jsonl"], []),
        (["orchestrator/step_1/train/all/traces.jsonl", "trainer/token_exports/step_1/rank_0.jsonl"], []),
        (["evals/gsm8k--m/a1/results.jsonl", "evals/gsm8k--m/b2/results.jsonl"], []),
        (["outputs/evals/math--m/a1/results.jsonl", "outputs/evals/code--m/b2/results.jsonl"], []),
        (["step_1/train/all/traces.jsonl", "old/step_1/train/all/traces.jsonl"], []),
        (["a/data.jsonl", "b/data.jsonl"], []),
    ],
)
def test_one_run_may_lie_in_several_folders(tmp_path: Path, files: list[str], found: list[str]) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert several_runs(tmp_path) == found


@pytest.mark.parametrize(
    ("asked", "said"), [("99", "no step 99; it has 1–3, 7."), ("4-6", "no steps 4-6; it has"), ("9-", "no steps 9-;")]
)
def test_steps_that_a_run_has_not_are_answered_with_those_it_has(tmp_path: Path, asked: str, said: str) -> None:
    run = make_run(tmp_path / "run", 1, 2, 3, 7)
    done = indexed(tmp_path / "x.sqlite", run, "--steps", asked)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert not (tmp_path / "x.sqlite").exists()


def test_swapped_arguments_are_seen(tmp_path: Path) -> None:
    run, database = make_run(tmp_path / "run"), tmp_path / "x.sqlite"
    for _ in range(2):  # a new name, then a database
        done = indexed(run, database)
        assert done.returncode == 2
        assert f"DATABASE comes first: rltracer-index {database} {run}" in done.stderr
        assert indexed(database, run).returncode == 0
    file = run / "rollouts" / TRACES.format(1)
    assert "DATABASE comes first" in indexed(file, database).stderr
    assert "DATABASE comes first" in indexed("s3://bucket/run", database).stderr


def test_what_the_rule_does_not_score_is_counted_and_its_environments_named(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    for number, env in enumerate(["maths", "code", "code"]):
        scores = {"metrics": {"correct_final_label": 1.0}} if env == "maths" else {}
        record = trace(
            [message("user", env), message("assistant", "42")], id=f"t{number}", info={"env_name": env}, **scores
        )
        append(folder / "rollouts" / TRACES.format(1), record)
    lines = indexed(tmp_path / "x.sqlite", folder).stdout.splitlines()
    assert lines[0] == "run: 4 trajectories, 3 unscored, 3 prompt groups, 1 step, 0 problems"
    assert lines[1] == "  success: metrics.correct_final_label >= 1"
    assert lines[2].startswith("  unscored: no trajectory of code")
    assert lines[2].endswith(" records metrics.correct_final_label; --success sets another rule")
    assert "unscored" not in indexed(tmp_path / "y.sqlite", make_run(tmp_path / "all")).stdout


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_summary_is_broken_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    run = make_run(tmp_path / ("long" * 14))
    monkeypatch.setenv("COLUMNS", "60")
    done = indexed(tmp_path / "x.sqlite", run, is_terminal=is_terminal)
    lines = done.stdout.splitlines()
    assert any(line.startswith(f"  datasette {tmp_path}/x.sqlite --setting ") for line in lines)
    told = [line for line in lines if not line.startswith("  datasette ")]
    assert (max(map(len, told)) <= 60) == is_terminal


def test_a_rule_that_scores_nothing_is_refused_in_the_words_of_the_success_command(tmp_path: Path) -> None:
    done = indexed(tmp_path / "x.sqlite", make_run(tmp_path / "run"), "--success", "metrics.foo>=1")
    assert done.returncode == 1
    assert "  success: reward >= 1\n" in done.stdout
    said, _, command = done.stderr.splitlines()
    assert command == f"  rltracer success {tmp_path}/x.sqlite run --rule 'PATH >= NUMBER'"
    refused = sentence(rltracer("success", tmp_path / "x.sqlite", "run", "--rule", "metrics.foo"))
    assert said == f"Error: {refused} The rule stays reward >= 1."
    names = [name for (name,) in rows(tmp_path / "x.sqlite", "select path from fields where path like 'metrics.%'")]
    assert any(name in done.stderr for name in names)
    assert rltracer("success", tmp_path / "x.sqlite", "--rule", f"{names[0]} >= 0").returncode == 0


def test_problems_are_counted_and_listed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    file = run / "rollouts" / TRACES.format(1)
    file.write_bytes(file.read_bytes() + b"no JSON\n")
    done = indexed(tmp_path / "x.sqlite", run)
    assert "1 step, 1 problem\n" in done.stdout
    assert f"  rltracer inspect {tmp_path / 'x.sqlite'} --problems" in done.stdout
    for place in (run, tmp_path / "x.sqlite"):
        told = rltracer("inspect", place, "--problems").stdout
        assert "line 2: " in told.replace("\n", " ")
        assert told.endswith("\n1 problem\n")
