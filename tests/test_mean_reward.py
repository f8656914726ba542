"""Over how many trajectories a mean reward is: said wherever the pass rate beside it is over others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from datasette.app import Datasette

from rltracer_sqlite import RLTracer, list_runs
from tests.commands import indexed as index_runs
from tests.commands import rltracer
from tests.export_runs import indexed, rollout, write_steps
from tests.indexing import dump, made_before, rows
from tests.plugin.conftest import get
from tests.plugin.html import words

JUDGED = {"reward": {"score": 0.6, "weight": 1.0}}  # a reward without the value that decides success
OVER = "Mean reward: over the 3 of 4 trajectories that have one."

PAGES = {"": 1, "run/1": 4, "step/1/1": 2, "group/1": 1, "prompt/1/1": 2}  # and how often it is said there


@pytest.fixture
def database(tmp_path: Path) -> Path:
    of_step = [rollout("a"), rollout("b", passed=False), rollout("c", passed=None, rewards=JUDGED)]
    of_step = [{**one, "info": {"env_id": "arith"}} for one in [*of_step, rollout("d", "Other?", passed=None)]]
    return indexed(tmp_path, {1: of_step})


@pytest.fixture
def two(tmp_path: Path, database: Path) -> Path:
    index_runs(database, tmp_path / "run", write_steps(tmp_path / "other", {1: [rollout("e")]}))
    return database


def test_the_lists_of_the_terminal_say_it_and_how_many_are_scored(database: Path) -> None:
    lines = rltracer("inspect", database).stdout.splitlines()
    assert lines[1:3] == ["Success: metrics.correct_final_label >= 1; 2 of 4 trajectories unscored.", OVER]
    assert [line.split()[-6:] for line in lines[3:]] == [
        ["scored", "groups", "pass", "rate", "reward", "over"], ["4", "2", "2", "0.500", "0.533", "3"]
    ]  # fmt: skip
    of_step = rltracer("inspect", database, "--step", 1).stdout.splitlines()
    assert of_step[2] == OVER
    assert [line.split()[1:] for line in of_step[3:]] == [
        ["split", "trajectories", "scored", "pass", "rate", "reward", "over", "preview"],
        ["train", "3", "2", "0.500", "0.533", "3", "6", "*", "7?"],
        ["train", "1", "0", "–", "–", "0", "Other?"],
    ]
    of_prompt = rltracer("inspect", database, "--prompt", 1).stdout.splitlines()
    assert of_prompt[2] == "Mean reward: over 3 trajectories."
    assert of_prompt[4].split()[2:8] == ["train", "3", "2", "0.500", "0.533", "3"]
    for asked in ([], ["--step", 1], ["--prompt", 1]):
        assert json.loads(rltracer("inspect", database, *asked, "--json").stdout.splitlines()[0])["rewarded"] == 3


def test_nothing_is_said_where_both_are_over_the_same(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a"), rollout("b", passed=False)], 2: [rollout("c", passed=None)]})
    for asked in ([], ["--step", 1], ["--step", 2]):
        shown = rltracer("inspect", database, *asked).stdout
        assert not any(said in shown for said in ("Mean reward", " over"))
    assert "scored  pass" not in rltracer("inspect", database, "--step", 1).stdout


def test_the_runs_of_an_index_say_it_in_both_lists(two: Path) -> None:
    assert rltracer("runs", two).stdout.splitlines()[1:6:4] == [
        "  1  run: 4 trajectories, read completely", "  2  other: 1 trajectory, read completely"
    ]  # fmt: skip
    assert [line.strip() for line in rltracer("runs", two).stdout.splitlines()[2:7:4]] == [
        "train: 2 of 4 scored, pass rate 0.500, mean reward 0.533 over 3 trajectories",
        "train: 1 scored, pass rate 1.000, mean reward 1.000",
    ]
    lines = rltracer("inspect", two).stdout.splitlines()
    assert lines[2] == "Mean reward: over the trajectories that have one, which are counted beside it."
    assert [line.split()[-6:] for line in lines[-3:]] == [
        ["scored", "pass", "rate", "reward", "over", "steps"],
        ["train", "2/4", "0.500", "0.533", "3", "1"],
        ["train", "1", "1.000", "1.000", "1", "1"],
    ]
    listed = [rltracer(*asked, "--json").stdout for asked in (("runs", two), ("inspect", two))]
    assert listed[0] == listed[1]
    first = json.loads(listed[0].splitlines()[0])
    wanted = ("scored", "successes", "pass_rate", "rewarded", "root", "state")
    assert [first[name] for name in wanted] == [2, 1, 0.5, 3, str(two.parent / "run"), "read completely"]


def test_a_run_without_a_score_or_a_reward_says_so(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a", passed=None)]})
    assert rltracer("runs", database).stdout.splitlines()[2] == "     train: 0 of 1 scored, no reward"


def test_an_analysis_says_it(database: Path, tmp_path: Path) -> None:
    assert rltracer("analyze", database, "-o", tmp_path / "out").returncode == 0
    assert " | 0.533 (over 3) | " in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    [head, row] = (tmp_path / "out" / "windows.csv").read_text(encoding="utf-8").splitlines()
    found = dict(zip(head.split(","), row.split(","), strict=True))
    assert (found["scored"], found["rewarded"], found["reward_mean"][:6]) == ("2", "3", "0.5333")


def test_the_caption_of_a_chart_says_it(database: Path) -> None:
    shown = rltracer("plot", database, "reward", is_terminal=True).stdout
    of_a_kind = "0.533 at step 1; 3 recorded in all."
    assert f"total, train: {of_a_kind} reward, train: {of_a_kind}" in " ".join(shown.split())


def test_python_has_the_number(database: Path) -> None:
    with RLTracer(database) as tracer:
        step = tracer.step(1)
        assert (step.scored, step.rewarded, step.reward_mean) == (2, 3, pytest.approx(1.6 / 3))
        assert [group.rewarded for group in step.prompts()] == [3, 0]
        assert "3 trajectories, pass rate 0.500 over 2 scored, " in repr(step.prompts()[0])
    [run] = list_runs(database)
    assert run.rewarded == 3
    assert repr(run).endswith(": 4 trajectories, steps 1, pass rate 0.500 of 'train' over 2 scored>")


@pytest.mark.asyncio
async def test_an_index_from_before_says_it_as_well_and_counts_its_steps_when_it_is_written_to(
    database: Path, tmp_path: Path
) -> None:
    counts = [
        f"select step, split, rewarded, reward_mean from {table}"
        for table in ("steps", "step_summary", "prompt_pass_rates join (select 1 as step)")
    ]
    asked = [["inspect", database, *more] for more in ([], ["--env", "arith"], ["--step", 1], ["--prompt", 1])]
    asked += [["runs", database], ["inspect", database, "--json"]]
    made, shown = [rows(database, sql) for sql in counts], [rltracer(*one) for one in asked]
    assert {one.returncode for one in shown} == {0}
    made_before("m005_rewarded_steps", database)
    before = dump(database)
    assert not any("sum(g.rewarded) as" in line for line in before)
    assert [rltracer(*one) for one in asked] == shown
    for page in PAGES:
        await get(Datasette([str(database)]), f"/-/rltracer/{database.stem}/{page}")
    assert dump(database) == before
    assert index_runs(database, tmp_path / "run").returncode == 0
    assert [rows(database, sql) for sql in counts] == made
    assert [made[0], made[1]] == [[(1, "train", 3, pytest.approx(1.6 / 3))]] * 2


@pytest.mark.parametrize(("page", "count"), PAGES.items(), ids=["runs", "run", "step", "group", "prompt"])
@pytest.mark.asyncio
async def test_the_pages_say_it(database: Path, page: str, count: int) -> None:
    text = words(await get(Datasette([str(database)]), f"/-/rltracer/{database.stem}/{page}"))
    assert text.count("over 3") == count
