"""What is asked for and matches nothing: the condition is named, with what there is instead, in at most two lines."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rltracer_sqlite.amounts import listed
from rltracer_sqlite.export import ExportError, ExportPreferences, FieldFilter, TraceDataExporter
from tests.commands import rltracer, sentence, sentence_after_funnel
from tests.index_factory import make_index

TURNS = "Nothing is left: the condition turns >= 99 is met by 0 of 3 trajectories. turns is there: 2."
ENV = "Nothing is left: the condition env in x is met by 0 of 3 trajectories. env is there: code, math."
GONE = (
    "Nothing is left: the condition file present is met by 0 of 3 trajectories. "
    "Their files have vanished since they were indexed: bring them back, and index the run again."
)
SUCCESS = (
    "Nothing is left: the condition accepted is met by 0 of 3 trajectories. What counts as a success: reward >= 1."
)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    rows = [
        {"uid": f"u{n}", "step": n, "env": env, "split": "train", "reward": 0.5, "turns": 2}
        for n, env in enumerate(["math", "code", "code"])
    ]
    rows.append({"uid": "e", "step": 0, "env": "x", "split": "eval", "reward": 0.5, "turns": 2})
    return make_index(tmp_path / "x.sqlite", rows)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--acceptance", "any", "--field", "env=x"], ENV),
        (["--acceptance", "any", "--env", "x"], ENV),
        (["--acceptance", "any", "--field", "turns>=99", "--field", "env=x"], TURNS),
        ([], SUCCESS),
    ],
)
def test_an_export_names_the_condition_that_left_nothing(
    database: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    told = rltracer("export", database, "--dry-run", *options)
    assert (told.returncode, told.stdout.splitlines()[-1]) == (0, said)
    assert sentence(rltracer("export", database, "-o", tmp_path / "o.jsonl", *options)) == said
    if options:
        assert (
            sentence(rltracer("export", database, "-o", tmp_path / "o.jsonl", "--mode", "preference", *options)) == said
        )


@pytest.mark.parametrize(("mode", "asked"), [("sft", "5 trajectories"), ("preference", "5 pairs")])
@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_target_of_which_nothing_is_left_names_the_condition(
    database: Path, tmp_path: Path, mode: str, asked: str, options: list[str]
) -> None:
    line = ["export", database, "-o", tmp_path / "o.jsonl", "--acceptance", "any", "--mode", mode, "--target", "5"]
    told = f"{asked} asked for, none available. "
    assert sentence(rltracer(*line, *options, "--env", "x")) == told + ENV
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("update trajectories set gone = 1")
    assert sentence(rltracer(*line, *options)) == told + GONE


SHORT = [
    ("20", "20 trajectories asked for, 3 available, of 2 prompts. There are no more: ask for fewer."),
    (
        "3 --per-prompt 1",
        "3 trajectories asked for, 2 available, of 2 prompts. Of 3 trajectories the condition per prompt leaves 2. "
        "There are enough with --per-prompt all (3) or with --window 1 (3); or ask for fewer.",
    ),
    (
        "2 --field turns<=2 --env code --env math --unique-prompts",
        "2 trajectories asked for, 1 available, of 2 prompts. Of 3 trajectories the condition unique prompts leaves 1. "
        "There are enough without --unique-prompts (3); or ask for fewer.",
    ),
    (
        "3 --per-prompt 1 --max-pass-rate 1 --unique-prompts",
        "3 trajectories asked for, 1 available, of 2 prompts. Of 3 trajectories the condition per prompt leaves 2, "
        "then unique prompts 1. There are enough "
        "with --per-prompt all and without --unique-prompts (3); or ask for fewer.",
    ),
    (
        "3 --env code --global-per-prompt 1",
        "3 trajectories asked for, 1 available, of 1 prompt. Of 3 trajectories the condition env in code leaves 2, "
        "then per prompt over all windows 1. "
        "Even without --global-per-prompt there are only 2; besides that, ask for fewer, or loosen a condition.",
    ),
    (
        "3 --mode rl --rl-from-trace --env code",
        "3 rows asked for, 1 available, of 1 prompt. Of 3 trajectories the condition env in code leaves 2, then per "
        "prompt 1. Even with --window 1 there are only 2; besides that, ask for fewer, or loosen a condition.",
    ),
]


@pytest.mark.parametrize(("line", "said"), SHORT, ids=[line for line, _ in SHORT])
def test_a_target_that_cannot_be_met_names_the_conditions_that_leave_too_few(
    database: Path, line: str, said: str
) -> None:
    options = ["--dry-run", "--acceptance", "any", "--target", *line.split()]
    available = "Available: split train, all steps of the run demo; split eval has 1 more."
    assert sentence_after_funnel(rltracer("export", database, *options)) == f"{said} {available}"


def test_a_target_that_is_too_high_says_how_many_are_unscored(tmp_path: Path) -> None:
    rows = [{"uid": str(n), "step": 0, "reward": None if n > 2 else 1.0} for n in range(7)]
    database = make_index(tmp_path / "x.sqlite", rows)
    said = sentence_after_funnel(rltracer("export", database, "--dry-run", "--per-prompt", "all", "--target", "5"))
    assert said == (
        "5 trajectories asked for, 3 available, of 1 prompt. Of 7 trajectories the condition scored leaves 3. "
        f"Ask for fewer, set another rule, by which more are scored (rltracer success {database} --rule "
        "'PATH >= NUMBER'), or loosen a condition."
    )
    told = rltracer("export", database, "--dry-run", "--target", "9").stdout.split("\n")
    assert [line.split() for line in told[1:3]] == [["available", "7", "–"], ["scored", "3", "4"]]
    failed = make_index(tmp_path / "y.sqlite", [*rows, *({**rows[0], "uid": f"f{n}", "reward": 0.0} for n in range(9))])
    with pytest.raises(ExportError) as raised:
        TraceDataExporter(failed, ExportPreferences(per_prompt=None, target_count=5)).inspect()
    command = f"rltracer success {failed} --rule 'PATH >= NUMBER'"
    assert str(raised.value).endswith(f"Of 16 trajectories 4 are unscored: {command} sets another rule.")
    left = {stage["stage"]: stage["left"] for stage in raised.value.funnel}
    assert (left["available"], left["scored"]) == (16, 12)
    assert left["accepted"] == left["per prompt"] == 3


def test_the_command_for_another_rule_is_of_the_run_that_has_unscored_trajectories(tmp_path: Path) -> None:
    rows = [{"run": "all", "reward": 1.0, "metrics.x": 1.0}, {"run": "some", "reward": 1.0}, {"run": "some"}]
    database = make_index(tmp_path / "an index.sqlite", rows, rule=("metrics.x", 1.0))
    said = sentence_after_funnel(rltracer("export", database, "--dry-run", "--per-prompt", "all", "--target", "5"))
    assert f"scored (rltracer success '{database}' 2 --rule 'reward >= 1'), or" in said


def test_a_target_of_pairs_counts_the_two_of_each(tmp_path: Path) -> None:
    rows = [{"uid": str(n), "step": 0, "reward": n / 4} for n in range(5)]
    database = make_index(tmp_path / "x.sqlite", rows)
    line = ["export", database, "--dry-run", "--mode", "preference", "--acceptance", "any", "--target", "3"]
    assert sentence_after_funnel(rltracer(*line, "--margin", "0.3")) == (
        "3 pairs asked for, 2 available, of 1 prompt. Of 5 trajectories the condition in a pair leaves 4. "
        "There are no more: ask for fewer."
    )


def test_pairs_that_differ_too_little_are_no_target(database: Path, tmp_path: Path) -> None:
    line = ["export", database, "-o", tmp_path / "o.jsonl", "--mode", "preference", "--target", "1"]
    said = sentence(rltracer(*line))
    assert said.startswith("1 pair asked for, none available. There is no pair: no prompt has two trajectories")


def test_several_environments_are_exported(database: Path) -> None:
    line = ["export", database, "--dry-run", "--acceptance", "any", "--env"]
    assert "\nSelected 2 trajectories" in rltracer(*line, "code").stdout
    assert "\nSelected 3 trajectories" in rltracer(*line, "code", "--env", "math").stdout


NO_MATHS = "The run demo has no trajectory with env maths. It has env code, math, x. Did you mean math?"


@pytest.mark.parametrize(
    "options", [["--env", "maths"], ["--env", "code", "--env", "maths"], ["--field", "env=x,maths"]]
)
@pytest.mark.parametrize("output", [["--dry-run"], ["-o", "o.jsonl"]])
def test_an_environment_that_no_run_has_is_refused_beside_others_too(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], output: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence(rltracer("export", database, *output, "--acceptance", "any", *options)) == NO_MATHS
    assert not (tmp_path / "o.jsonl").exists()


def test_an_environment_of_one_of_several_runs_is_enough(database: Path, tmp_path: Path) -> None:
    other = make_index(tmp_path / "y.sqlite", [{"uid": "b", "step": 0, "env": "bash", "reward": 1.0}])
    line = ["export", database, other, "--dry-run", "--acceptance", "any", "--env", "math", "--env"]
    assert "\nSelected 2 trajectories" in rltracer(*line, "bash").stdout
    said = sentence(rltracer(*line, "bush", "--env", "basic"))
    assert said == (
        "None of the 2 runs has a trajectory with env bush, basic. They have env bash, code, math, x. "
        "Did you mean bash?"
    )


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("stop_condition=stop,stopp", "No trajectory has stop_condition stopp. Did you mean stop?"),
        ("stop_condition=stop,zzz,qqq", "No trajectory has stop_condition zzz or qqq."),
        ("tools=bash,bsh", "No trajectory has tools bsh. Did you mean bash?"),
        ("stop_condition=stop", None),
        ("turns=2,99", None),
    ],
)
def test_a_value_that_no_trajectory_has_is_told_beside_others(tmp_path: Path, field: str, said: str | None) -> None:
    row = {"uid": "a", "step": 0, "reward": 1.0, "turns": 2, "stop_condition": "stop", "tools": '["bash"]'}
    database = make_index(tmp_path / "x.sqlite", [row])
    told = rltracer("export", database, "--dry-run", "--field", field)
    assert (told.returncode, told.stdout.splitlines()[-1].startswith("Selected 1 ")) == (0, said is None)
    assert said is None or told.stdout.splitlines()[-1] == said


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (["inspect", "--env", "maths"], "math"),
        (["inspect", "--split", "trian"], "train"),
        (["plot", "pass-rate", "--env", "maths"], "math"),
        (["analyze", "-o", "out", "--split", "trian"], "train"),
        (["search", "words", "--env", "maths"], "math"),
        (["export", "--dry-run", "--run", "demmo"], "demo"),
    ],
)
def test_what_was_meant_is_asked(database: Path, line: list[str], meant: str) -> None:
    if line[0] == "search":
        rltracer("fts", database)
    done = rltracer(line[0], database, *line[1:])
    assert (done.returncode != 0, done.stderr.endswith(f" Did you mean {meant}?\n")) == (True, True)


def test_the_tools_that_there_are_stand_one_by_one(tmp_path: Path) -> None:
    rows = [{"uid": str(n), "step": 0, "reward": 1.0, "tools": f'["bash","edit{n}"]'} for n in range(2)]
    told = rltracer("export", make_index(tmp_path / "x.sqlite", rows), "--dry-run", "--field", "tools=x").stdout
    assert told.endswith("tools is there: bash, edit0, edit1.\n")


def test_the_summary_says_it_too(database: Path) -> None:
    preferences = ExportPreferences(acceptance="any", field_filters=(FieldFilter("env", allowed_values=("x",)),))
    assert TraceDataExporter([database], preferences).inspect()["notes"] == [ENV]
    assert TraceDataExporter([database], ExportPreferences(acceptance="any")).inspect()["notes"] == []


@pytest.mark.parametrize("runs", [1, 30])
@pytest.mark.parametrize("command", ["search", "analyze"])
def test_the_environments_of_many_runs_are_one_short_list(tmp_path: Path, command: str, runs: int) -> None:
    rows = [
        {"run": f"run {run:02}", "uid": f"{run} {env}", "step": 1, "env": f"environment-{env:02}", "reward": 1.0}
        for run in range(runs)
        for env in range(20)
    ]
    database = make_index(tmp_path / "x.sqlite", rows)
    if command == "search":
        assert rltracer("fts", database).returncode == 1  # there is no file to read, and the tables are made
    more = ["words"] if command == "search" else ["-o", tmp_path / "out"]
    said = sentence(rltracer(command, database, *more, "--env", "nosuch"))
    which = "The run run 00 has no" if runs == 1 else "None of the 30 runs has a"
    assert said.startswith(f"{which} trajectory with env nosuch. ")
    assert said.endswith(" have env environment-00, environment-01, environment-02 and 17 more." if runs > 1 else ".")
    assert len(said) <= 2 * 80 - len("Error: ")


@pytest.mark.parametrize(
    ("names", "told"),
    [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["x" * 80, "b"], "x" * 80 + " and 1 more")],
)
def test_a_list_of_names_has_an_end(names: list[str], told: str) -> None:
    assert listed(names) == told


def test_an_export_of_which_nothing_is_scored_names_the_rule(tmp_path: Path) -> None:
    made = make_index(tmp_path / "x.sqlite", [{"reward": None}, {"reward": None, "prompt": "6 * 7?"}])
    said = rltracer("export", made, "--dry-run").stdout.splitlines()[-1]
    assert said == SUCCESS.replace("accepted", "scored").replace("3", "2")
