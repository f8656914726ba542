"""`rltracer analyze` and `rltracer success` on indexes and on a run's folder."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import subprocess
import sys

import pytest
from click.testing import CliRunner

from rltracer_sqlite.analysis import Selection, analyse_run
from rltracer_sqlite.cli import analyze, success
from rltracer_sqlite.sample import write_sample

from .index_factory import make_index


def group(successes, scored, unscored=0, **columns):
    rewards = [float(number < successes) for number in range(scored)] + [None] * unscored
    return [{"reward": reward, **columns} for reward in rewards]


ROWS = [
    *group(0, 8, step=1, prompt="hard"),
    *group(6, 8, step=1, prompt="turning"),
    *group(8, 8, step=2, prompt="easy", env="code"),
    *group(1, 3, 1, step=3, prompt="turning"),
    *group(7, 8, step=4, prompt="turning"),
    *group(1, 2, step=3, split="eval", prompt="held out"),
]


@pytest.fixture
def index(tmp_path):
    return make_index(tmp_path / "run.sqlite", ROWS)


def invoke(command, *arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_prompts_and_windows(index, tmp_path):
    result = invoke(analyze.command, index, "-o", tmp_path / "out", "--window", "2", "--k", "1,4", "--split", "train")
    assert result.exit_code == 0, result.output
    prompts = {(row["step_first"], row["preview"]): row for row in read_csv(tmp_path / "out" / "prompts.csv")}
    assert prompts["1", "hard"]["pass_at_4"] == "0.0"
    assert float(prompts["1", "turning"]["pass_at_4"]) == 1.0
    assert (prompts["3", "turning"]["scored"], prompts["3", "turning"]["change"]) == ("11", "")
    first, code, math, second = read_csv(tmp_path / "out" / "windows.csv")
    assert (first["env"], code["env"], math["env"], second["env"]) == ("", "code", "math", "")
    assert (first["prompts"], first["prompts_all_failed"], first["prompts_all_passed"]) == ("3", "1", "1")
    assert (second["scored"], second["unscored"]) == ("11", "1")


def test_moves_between_windows(index):
    connection = sqlite3.connect(index)
    metrics = analyse_run(connection, 1, Selection(window=1, split="train")).metrics
    connection.close()
    turning = [(m.step_first, m.change) for m in metrics if m.count.preview == "turning"]
    assert turning == [(1, None), (3, "lost"), (4, "gained")]


def test_windows_of_splits_are_the_same(index):
    connection = sqlite3.connect(index)
    windows = analyse_run(connection, 1, Selection(window=2)).windows
    connection.close()
    assert {(w.split, w.step_first, w.step_last) for w in windows} == {("train", 1, 2), ("train", 3, 4), ("eval", 3, 4)}


@pytest.mark.parametrize(
    ("options", "steps"),
    [(["--window", "0"], {("1", "4")}), (["--step-start", "3"], {("3", "4")}), (["--step-end", "2"], {("1", "2")})],
)
def test_ranges(index, tmp_path, options, steps):
    invoke(analyze.command, index, "-o", tmp_path / "out", *options)
    assert {(row["step_first"], row["step_last"]) for row in read_csv(tmp_path / "out" / "windows.csv")} == steps


def test_unscored_are_counted_and_listed_apart(index, tmp_path):
    result = invoke(analyze.command, index, "-o", tmp_path / "out")
    assert "1 without a value" in result.output
    [row] = read_csv(tmp_path / "out" / "unscored.csv")
    assert (row["run"], row["step"], row["preview"], row["path"]) == ("demo", "3", "turning", "train.jsonl")
    analysis = json.loads((tmp_path / "out" / "analysis.json").read_text("utf-8"))
    assert analysis["runs"] == [
        {"run": "demo", "success": "reward >= 1", "trajectories": 38, "scored": 37, "unscored": 1, "amiss": ""}
    ]


def test_nothing_unscored_leaves_a_header(tmp_path):
    index = make_index(tmp_path / "run.sqlite", group(1, 2))
    invoke(analyze.command, index, "-o", tmp_path / "out")
    assert (tmp_path / "out" / "unscored.csv").read_text("utf-8").startswith("run,id,uid,")


def test_json_says_what_the_csv_says(index, tmp_path):
    invoke(analyze.command, index, "-o", tmp_path / "out")
    rows = json.loads((tmp_path / "out" / "prompts.json").read_text("utf-8"))
    text = [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows]
    assert text == read_csv(tmp_path / "out" / "prompts.csv")


def test_report(index, tmp_path):
    invoke(analyze.command, index, "-o", tmp_path / "out", "--window", "1", "--k", "4")
    report = (tmp_path / "out" / "report.md").read_text("utf-8")
    assert "Left out for want of the value that decides success: 1, see" in report
    assert "### Prompts by pass@4, 1, train" in report
    assert "### Prompts lost" in report
    assert "█" in report


@pytest.mark.parametrize("window", [[], ["--window", "2"]], ids=["one window", "two"])
def test_nothing_is_gained_or_lost_where_there_is_no_window_before(index, tmp_path, window):
    invoke(analyze.command, index, "-o", tmp_path / "out", "--split", "train", *window)
    expected = [("–", "–"), ("0", "0")] if window else [("–", "–")]
    whole = [row for row in read_csv(tmp_path / "out" / "windows.csv") if not row["env"]]
    assert [(row["gained"] or "–", row["lost"] or "–") for row in whole] == expected
    table = (tmp_path / "out" / "report.md").read_text("utf-8").partition("| steps |")[2].partition("\n\n")[0]
    cells = [line.split(" | ") for line in table.splitlines()[2:]]
    assert [(row[-3], row[-2]) for row in cells if row[2] == "all"] == expected


def test_a_histogram_says_how_many_prompts_it_leaves_out(tmp_path):
    rows = [*group(1, 4, prompt="scored"), *group(1, 2, prompt="few"), *group(0, 0, 2, prompt="none")]
    invoke(analyze.command, make_index(tmp_path / "run.sqlite", rows), "-o", tmp_path / "out", "--k", "1,4")
    report = (tmp_path / "out" / "report.md").read_text("utf-8")
    assert "\n\n1 more has no pass rate.\n" in report
    assert "\n\n2 more have no pass@4.\n" in report
    histograms = json.loads((tmp_path / "out" / "analysis.json").read_text("utf-8"))["histograms"]
    assert {one["of"]: one["left_out"] for one in histograms} == {"pass_rate": 1, "pass_at_4": 2}


def test_a_group_of_one_says_nothing_of_its_signal(tmp_path):
    index = make_index(tmp_path / "run.sqlite", [*group(0, 4, prompt="silent"), *group(1, 4, prompt="b"), *group(1, 1)])
    invoke(analyze.command, index, "-o", tmp_path / "out")
    [window] = read_csv(tmp_path / "out" / "windows.csv")
    assert (window["prompt_groups"], window["judged_groups"], window["zero_variance_groups"]) == ("3", "2", "1")
    assert "| 1 of 2 |" in (tmp_path / "out" / "report.md").read_text("utf-8")


@pytest.mark.threat("T32")
def test_report_keeps_a_hostile_prompt_in_its_cell(tmp_path):
    hostile = "<img src=x>|`code`\n# [title](javascript:x)"
    rows = [*group(0, 2, step=1, prompt=hostile), *group(2, 2, step=2, prompt=hostile)]
    invoke(analyze.command, make_index(tmp_path / "run.sqlite", rows), "-o", tmp_path / "out", "--window", "1")
    [line] = [line for line in (tmp_path / "out" / "report.md").read_text("utf-8").splitlines() if "img" in line]
    assert r"\<img src=x\>\|\`code\` \# \[title\](javascript:x)" in line


def test_another_rule_leaves_the_index_alone(index, tmp_path):
    before = index.read_bytes()
    result = invoke(analyze.command, index, "-o", tmp_path / "out", "--success", "reward >= 0")
    assert "demo: reward >= 0; 37 scored" in result.output
    assert {row["pass_rate"] for row in read_csv(tmp_path / "out" / "prompts.csv")} == {"1.0"}
    assert index.read_bytes() == before


def test_several_indexes_at_once(tmp_path):
    paths = [
        make_index(tmp_path / f"{n}.sqlite", [{"run": f"run {n}"}, {"run": f"run {n}", "reward": 1}]) for n in "ab"
    ]
    invoke(analyze.command, *paths, "-o", tmp_path / "out")
    assert [row["run"] for row in read_csv(tmp_path / "out" / "windows.csv")] == ["run a", "run b"]


def test_a_run_is_indexed_first(tmp_path):
    write_sample(tmp_path / "run")
    result = invoke(analyze.command, tmp_path / "run", "-o", tmp_path / "out", "--window", "4")
    assert result.exit_code == 0, result.output
    windows = [row for row in read_csv(tmp_path / "out" / "windows.csv") if not row["env"]]
    assert sum(int(row["scored"]) for row in windows) > 100
    assert not [path for path in (tmp_path / "run").rglob("*") if path.suffix in (".sqlite", ".csv")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "0,1"], "no list of whole numbers"),
        (["--k", "x"], "no list of whole numbers"),
        (["--success", "reward > 1"], "Cannot read the rule"),
        (["--success", "metrics.none >= 1"], "No value is recorded under metrics.none"),
        (["--run", "other"], "It holds: demo"),
        (["--window", "-1"], "not in the range"),
    ],
)
def test_says_what_is_wrong(index, tmp_path, options, message):
    result = invoke(analyze.command, index, "-o", tmp_path / "out", *options)
    assert result.exit_code != 0
    assert message in f"{result.output}{result.exception}"


def test_success_shows_the_rules(index):
    result = invoke(success.command, index)
    assert result.output.splitlines() == [
        "demo: reward >= 1:",
        "  train: 22 successes of 35 scored, pass rate 0.629; 1 unscored",
        "  eval: 1 success of 2 scored, pass rate 0.500; 0 unscored",
    ]


def test_success_changes_the_rule_and_every_statistic(tmp_path):
    rows = [
        {"reward": 0, "rewards.format.score": score, "prompt": "p", "step": step}
        for step, score in enumerate((0.2, 0.7))
    ]
    index = make_index(tmp_path / "run.sqlite", rows)
    result = invoke(success.command, index, "demo", "--rule", "rewards.format.score >= 0.5")
    assert result.output == (
        "demo: rewards.format.score >= 0.5: train: 1 success of 2 scored, pass rate 0.500; 0 unscored\n"
        f"The default rule comes back with:\n  rltracer success {index} demo --default\n"
    )
    connection = sqlite3.connect(index)
    assert connection.execute("select success from trajectories order by id").fetchall() == [(0,), (1,)]
    assert connection.execute("select pass_rate from prompt_groups order by id").fetchall() == [(0.0,), (1.0,)]
    assert connection.execute("select pass_rate from steps order by step").fetchall() == [(0.0,), (1.0,)]
    assert connection.execute("select success_path, success_chosen from runs").fetchone() == ("rewards.format.score", 1)
    connection.close()


@pytest.mark.parametrize("label", ["metrics.correct_final_label", "metrics.other"])
def test_the_default_rule_comes_back(tmp_path, label):
    """It is that of each run, as if none had ever been set, and is chosen anew by what is read later."""
    rows = [{"run": "a", "reward": 1.0, label: 0.0}, {"run": "b", "reward": 1.0}]
    index = make_index(tmp_path / "run.sqlite", rows)
    invoke(success.command, index, "--rule", "reward >= 0.5")
    done = invoke(success.command, index, "--default")
    is_label = label.endswith("_label")
    assert [line.partition(": train")[0] for line in done.output.splitlines()] == [
        f"a: {label if is_label else 'reward'} >= 1",
        "b: reward >= 1",
    ]
    connection = sqlite3.connect(index)
    assert connection.execute("select success from trajectories order by id").fetchall() == [(int(not is_label),), (1,)]
    assert connection.execute("select distinct success_chosen from runs").fetchall() == [(0,)]
    connection.close()
    assert invoke(success.command, index, "--default", "--rule", "reward").exit_code == 2


def test_rules_and_what_they_score_as_json(index, tmp_path):
    train, held_out = (json.loads(line) for line in invoke(success.command, index, "--json").stdout.splitlines())
    rule = {"success": "reward >= 1", "success_path": "reward", "success_threshold": 1.0, "success_chosen": False}
    rule["reward_parts"] = None
    counts = {"split": "train", "trajectories": 36, "scored": 35, "successes": 22, "pass_rate": 22 / 35}
    assert train == {"run_id": 1, "run": "demo", **rule, **counts}
    assert (held_out["split"], held_out["pass_rate"]) == ("eval", 0.5)
    assert all(f"{name}" in success.command.help for name in train)
    changed = invoke(success.command, index, "--rule", "reward >= 2", "--json")
    assert [json.loads(line)["success_chosen"] for line in changed.stdout.splitlines()] == [True, True]
    assert "--default" in changed.stderr
    nothing = make_index(tmp_path / "nothing.sqlite", [{"step": None}])
    with sqlite3.connect(nothing) as connection:
        connection.execute("delete from prompt_groups")
    connection.close()
    [told] = invoke(success.command, nothing, "--json").stdout.splitlines()
    assert (json.loads(told)["split"], json.loads(told)["trajectories"]) == (None, 0)


def test_an_analysis_as_json_is_what_its_file_holds(index, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = invoke(analyze.command, index, "--json", "--window", "2")
    assert not list(tmp_path.glob("analysis"))
    written = invoke(analyze.command, index, "--json", "--window", "2", "-o", "out")
    assert written.stderr == "Written to out: report.md, prompts.csv, windows.csv and more\n"
    [line] = written.stdout.splitlines()
    assert json.loads(line) == json.loads((tmp_path / "out" / "analysis.json").read_text("utf-8"))
    assert printed.stdout == written.stdout


@pytest.mark.parametrize(("rule", "code"), [("reward > 1", 2), ("rewards.none.score >= 1", 1)])
def test_success_refuses_a_rule_that_would_score_nothing(index, rule, code):
    before = invoke(success.command, index).output
    assert invoke(success.command, index, "demo", "--rule", rule).exit_code == code
    assert invoke(success.command, index).output == before


def test_an_analysis_is_the_same_to_the_last_digit_in_every_process(demo):
    call = [
        sys.executable,
        "-c",
        "from rltracer_sqlite.cli import main; main()",
        "analyze",
        demo / "x.sqlite",
        "--json",
    ]
    seeds = [{**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2", "3", "5")]
    told = [
        subprocess.run([*call, "--window", "4"], env=seed, capture_output=True, check=True).stdout for seed in seeds
    ]
    assert told[0]
    assert told == [told[0]] * len(seeds)
