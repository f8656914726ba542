"""A reward that is made of several: where the terminal, a chart, a report or an export names the rule, it says so."""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.analysis import Selection, analyse_run
from rltracer_sqlite.export import TraceDataExporter
from rltracer_sqlite.index import derived
from rltracer_sqlite.passrates import SuccessRule
from rltracer_sqlite.reward_parts import RewardParts, reward_parts
from rltracer_sqlite.sources.table.built_in import preset
from tests.commands import indexed, rltracer
from tests.index_factory import make_index
from tests.indexing import index, value
from tests.summed_rewards import ACCURACY, ALONE, FORMAT, SUM, indexed_sum, write_swift

A, B, C = (f"rewards.{name}.score" for name in "abc")


@pytest.fixture(scope="module")
def summed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed_sum(tmp_path_factory.mktemp("summed"))


def told(database: Path, run: int = 1, path: str = "reward") -> str | None:
    with closing(sqlite3.connect(database)) as connection:
        parts = reward_parts(connection, run, path)
    return parts and parts.words


PLACES = {
    "runs": (["runs"], f"success: {SUM}\n"),
    "success": (["success"], f"summed: {SUM}: split not recorded: 4 successes of 8 scored"),
    "steps": (["inspect"], f"Success: {SUM}; all scored."),
    "a step": (["inspect", "--step", 1], f"Success: {SUM}; all scored."),
    "a prompt": (["inspect", "--prompt", 1], f"Success: {SUM}; all scored."),
    "a prompt of a step": (["inspect", "--step", 1, "--prompt", 1], f"Success: {SUM}; all scored."),
    "the hardest": (["inspect", "--hardest"], f"Success: {SUM}; every prompt is scored."),
    "a trajectory": (["inspect", "--trajectory", 1], f"passed (reward >= 1, the sum of {ACCURACY} and {FORMAT})"),
    "two trajectories": (["inspect", "--trajectory", 1, "--with", 2], f"Success: {SUM}.\n"),
    "a chart": (["plot", "pass-rate"], f"Success: {SUM}; all scored."),
    "a dry run": (["export", "--dry-run"], f"Success: {SUM}; all scored."),
    "an analysis": (["analyze"], f"summed: {SUM}; 8 scored trajectories"),
}


@pytest.mark.parametrize("place", list(PLACES))
def test_every_place_in_the_terminal_says_what_the_rule_is_on(
    summed: Path, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (command, *options), expected = PLACES[place]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    done = rltracer(command, summed, *options, is_terminal=True)
    assert (done.returncode, expected in done.stdout) == (0, True), done.stdout


@pytest.mark.parametrize("place", list(PLACES))
def test_a_rule_on_one_of_them_says_nothing_of_the_others(tmp_path: Path, place: str) -> None:
    (command, *options), _ = PLACES[place]
    database = indexed_sum(tmp_path)
    assert rltracer("success", database, "--rule", ALONE).returncode == 0
    more = ["-o", tmp_path / "a"] if command == "analyze" else []
    said = rltracer(command, database, *options, *more, is_terminal=True).stdout
    assert "the sum" not in said
    assert ALONE in said or ALONE in " ".join(said.split())


def test_indexing_tells_it_also_of_a_rule_that_was_asked_for(tmp_path: Path) -> None:
    run = write_swift(tmp_path / "run", {ACCURACY: [0.0], FORMAT: [1.0]})
    line = f"  rewards: {ACCURACY} and {FORMAT}; the rule is on their sum, not on each\n"
    assert f"{line}  by one of them alone: --success '{ALONE}'\n" in indexed(tmp_path / "x.sqlite", run).stdout
    asked = indexed(tmp_path / "y.sqlite", run, "--success", "reward >= 1").stdout
    assert line in asked
    assert "by one of them" not in asked
    assert "by one of them" not in indexed(tmp_path / "y.sqlite", run).stdout


def test_the_command_that_sets_another_rule_is_offered_while_nobody_has_chosen_one(tmp_path: Path) -> None:
    database = indexed_sum(tmp_path)
    said = rltracer("success", database).stdout
    assert said.endswith(
        f"By one of these rewards alone, as in:\n  rltracer success {database} summed --rule '{ALONE}'\n"
    )
    chosen = rltracer("success", database, "--rule", "reward >= 1").stdout
    assert chosen.startswith(f"summed: {SUM}")
    assert "By one of these" not in chosen
    assert rltracer("success", database, "--rule", ALONE).stdout.startswith(f"summed: {ALONE}: ")
    assert value(database, "select sum(success) from trajectories") == 2


def test_programs_get_the_paths(summed: Path) -> None:
    paths = [f"rewards.{name}.score" for name in (ACCURACY, FORMAT)]
    for asked in (["runs", summed, "--json"], ["success", summed, "--json"]):
        found = json.loads(rltracer(*asked).stdout)
        assert (found["success"], found["reward_parts"]) == ("reward >= 1", paths)
    summary = TraceDataExporter(summed).inspect()
    assert [(run["success"], list(run["reward_parts"])) for run in summary["runs"]] == [("reward >= 1", paths)]
    assert summary["success_of"] == f"{SUM}; all scored"


def test_an_analysis_says_it_of_the_rule_that_it_applies(summed: Path) -> None:
    with closing(sqlite3.connect(summed)) as connection:
        rules = [analyse_run(connection, 1, Selection(rule=rule)).rule for rule in (None, SuccessRule(ALONE[:-5], 1))]
        asked = analyse_run(connection, 1, Selection(rule=SuccessRule("reward", 2))).rule
    assert rules == [SUM, ALONE]
    assert asked == SUM.replace("1", "2", 1)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{A: 1.0, B: 0.0}], "made of a and b"),
        ([{A: 1.0, B: 0.0, C: 0.5}], "made of a, b and c"),
        ([{A: 1.0}, {B: 0.0}], "made of a and b"),  # as TRL leaves a function out that does not apply
        ([{A: 1.0}, {A: 1.0, "step": 2, B: 0.5}], "made of a and b"),
        ([{A: 1.0, "env": "x"}, {B: 0.0, "env": "y"}], None),
        ([{A: 1.0, B: 1.0, "env": "x"}, {C: 0.0, "env": "y"}], "made of a and b"),
        ([{A: 1.0, B: 1.0, "env": "x"}, {B: 0.0, C: 0.0, "env": "y"}], "made of several of a, b and c"),
        ([{A: 1.0}], None),
        ([{}], None),
        ([{"run": "other", A: 1.0, B: 1.0}, {}], None),
    ],
)
def test_what_a_total_is_made_of(tmp_path: Path, rows: Sequence[dict[str, Any]], expected: str | None) -> None:
    database = make_index(tmp_path / "x.sqlite", [{"run": "demo", "reward": 1.0, **row} for row in rows])
    run = value(database, "select id from runs where name = 'demo'")
    assert told(database, run) == expected
    assert told(database, run, "metrics.x") is None


def test_rewards_that_are_not_added_up_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived, "MAX_REWARDS", 1)
    rows = [{"reward": 1.0, A: 1.0, **({B: 1.0} if number == 3 else {})} for number in range(5)]
    database = make_index(tmp_path / "x.sqlite", rows)
    assert value(database, "select count(distinct name) from step_values where name like 'reward\\__' escape '\\'") == 1
    assert told(database) == "made of a and b"


def test_a_column_that_is_not_there_is_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived, "MAX_REWARDS", 1)
    database = make_index(tmp_path / "x.sqlite", [{"reward": 1.0, A: 1.0, B: 1.0}])
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("insert into fields (path, column_name, kind) values (?, '\"; x', 'number')", (C,))
    assert told(database) == "made of a and b"


def test_many_and_long_names_are_cut(tmp_path: Path) -> None:
    names = tuple(f"rewards.function_{number}.score" for number in range(9))
    assert RewardParts(names, True, True).words == (
        "the sum of function_0, function_1, function_2, function_3 and 5 more"
    )
    long = RewardParts((f"rewards.{'x' * 100}.score", B), True, True)
    assert long.words == f"the sum of {'x' * 29}… and b"


def test_a_name_from_a_file_stays_in_its_line(tmp_path: Path) -> None:
    run = write_swift(tmp_path / "run", {"a\n\x1b[1mSuccess": [0.0], FORMAT: [1.0]})
    said = [indexed(tmp_path / "x.sqlite", run).stdout]
    for command, *options in (
        ["runs"],
        ["success"],
        ["inspect"],
        ["inspect", "--trajectory", 1],
        ["plot", "pass-rate"],
    ):
        said.append(rltracer(command, tmp_path / "x.sqlite", *options, is_terminal=True).stdout)
    said.append(rltracer("export", tmp_path / "x.sqlite", "--dry-run").stdout)
    assert not [text for text in said if "\x1b" in text or "\n\u241b" in text or "a\u240a\u241b[1m" not in text]


@pytest.mark.parametrize("name", ["trl", "ms-swift", "chat", "verl"])
def test_only_a_mapping_without_a_total_adds_rewards_up(name: str) -> None:
    assert preset(name).adds_rewards == (name in ("trl", "ms-swift"))


@pytest.mark.parametrize(("total", "expected"), [("", "the sum of a and b"), ('reward = "total"', "made of a and b")])
def test_a_mapping_of_ones_own_says_whether_it_is_a_sum(tmp_path: Path, total: str, expected: str) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"q": "6 * 7?", "r": "42", "total": 3, "s": {"a": 1, "b": 0}}))
    (tmp_path / "own.toml").write_text(
        'name = "own"\n[[shape]]\n[shape.content]\nkind = "text"\nprompt = "q"\ncompletion = "r"\n'
        f'[shape.columns]\n{total}\n[shape.rewards]\ninside = "s"\n'
    )
    assert indexed(tmp_path / "x.sqlite", tmp_path / "rows.jsonl", "--mapping", tmp_path / "own.toml").returncode == 0
    assert told(tmp_path / "x.sqlite") == expected
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection, connection:
        connection.execute("update runs set mapping = 'no [ TOML'")
    assert told(tmp_path / "x.sqlite") == "made of a and b"


def test_runs_names_the_environments_that_the_rule_says_nothing_of(tmp_path: Path) -> None:
    rows = [{"env": "math", "metrics.x": 1.0}, {"env": "code"}, {"env": "games"}]
    database = make_index(tmp_path / "x.sqlite", rows, rule=("metrics.x", 1.0))
    said = rltracer("runs", database).stdout
    assert "     success: metrics.x >= 1; no trajectory of code, games records metrics.x\n" in said
    rltracer("success", database, "--rule", "metrics.x >= 2")
    assert "; no trajectory" not in rltracer("runs", make_index(tmp_path / "y.sqlite", rows[:1])).stdout


@pytest.mark.parametrize("is_terminal", [False, True])
def test_what_a_rule_scores_stands_below_it_where_one_line_is_too_long_for_a_terminal(
    tmp_path: Path, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule, scores = "demo: reward >= 1:", "split not recorded: 1 success of 1 scored, pass rate 1.000; 0 unscored"
    database = make_index(tmp_path / "x.sqlite", [{"split": None, "reward": 1.0}])
    line = f"{rule} {scores}"
    broken = f"{rule}\n  {scores}\n" if is_terminal else f"{line}\n"
    for columns, said in ((len(line), f"{line}\n"), (len(line) - 1, broken)):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert rltracer("success", database, is_terminal=is_terminal).stdout == said


def test_runs_with_different_rewards_are_told_apart(tmp_path: Path) -> None:
    database = indexed_sum(tmp_path)
    index(database, write_swift(tmp_path / "one", {ACCURACY: [1.0]}))
    said = rltracer("inspect", database).stdout
    assert f"Success: {SUM} (run 1), reward >= 1 (run 2)." in " ".join(said.split())


@pytest.mark.parametrize("name", ["Right format", "a >= 2", "it's", "50% off", "<b>"])
def test_the_rule_that_is_offered_can_be_set_whatever_the_reward_is_called(tmp_path: Path, name: str) -> None:
    index(tmp_path / "x.sqlite", write_swift(tmp_path / "run", {name: [1.0, 0.0], FORMAT: [1.0, 1.0]}))
    said = rltracer("success", tmp_path / "x.sqlite").stdout
    command = shlex.split(said.partition("as in:\n")[2])[1:]
    assert rltracer(*command).returncode == 0
    rule = f"rewards.{name}.score >= 1"
    said = " ".join(rltracer("success", tmp_path / "x.sqlite").stdout.split())
    assert f"run: {rule}: split not recorded: 2 successes of 4 scored" in said
    funnel = TraceDataExporter(tmp_path / "x.sqlite").inspect()
    assert funnel["success_of"] == f"{rule}; all scored"
