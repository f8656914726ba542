"""Pages that name a success rule say so where it is on the total of several rewards, and of what it scores nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from datasette.app import Datasette

from tests.index_factory import make_index
from tests.indexing import index
from tests.summed_rewards import ALONE, SUM, indexed_sum, write_swift

from .conftest import get
from .html import words

pytestmark = pytest.mark.asyncio
HERE = "/-/rltracer/index"
PLACES = {
    "overview": (f"{HERE}/", f"Success is {SUM}."),
    "run": (f"{HERE}/run/1", f"success is {SUM} · read"),
    "prompt": (f"{HERE}/prompt/1/1", f"success is {SUM} ·"),
    "step": (f"{HERE}/step/1/1", f"· success is {SUM}"),
    "group": (f"{HERE}/group/1", f"success is {SUM} · prompt 1"),
    "compared": (f"{HERE}/compare?a=1&b=2", f"Success: {SUM}. the same:"),
    "trajectory": (f"{HERE}/trajectory/1", f"✓ passed ({SUM[:11]}, {SUM[13:]} reward"),
    "chart": (f"{HERE}/run/1/charts/pass_rate.json", f"Success: {SUM}; all scored."),
    "export": (f"{HERE}/export?_preview=sft", f"Success: {SUM}; all scored."),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed_sum(tmp_path_factory.mktemp("summed"))


@pytest.mark.parametrize("place", list(PLACES))
async def test_every_page_says_what_the_rule_is_on(made: Path, place: str) -> None:
    address, expected = PLACES[place]
    assert expected in words(await get(Datasette([str(made)]), address))


@pytest.mark.parametrize("place", list(PLACES))
async def test_a_rule_on_one_of_them_says_nothing_of_the_others(tmp_path: Path, place: str) -> None:
    path = tmp_path / "index.sqlite"
    index(
        path, write_swift(tmp_path / "run", {"Accuracy": [1.0, 0.0], "Format": [1.0, 1.0]}), success=(ALONE[:-5], 1.0)
    )
    said = words(await get(Datasette([str(path)]), PLACES[place][0]))
    assert "the sum" not in said
    assert ALONE in said


async def test_the_overview_names_the_runs_of_each_rule(tmp_path: Path) -> None:
    path = indexed_sum(tmp_path)
    for name in ("one", "two"):
        index(path, write_swift(tmp_path / name, {"Accuracy": [1.0]}))
    page = words(await get(Datasette([str(path)]), f"{HERE}/"))
    assert f"Success is reward >= 1 in two, one; {SUM} in summed." in page


async def test_more_rules_than_fit_are_counted(tmp_path: Path) -> None:
    path = make_index(tmp_path / "index.sqlite", [{"run": f"r{number}"} for number in range(10)])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update runs set success_threshold = id")
    page = words(await get(Datasette([str(path)]), f"{HERE}/"))
    assert "Success is reward >= 10 in r9; " in page
    assert "reward >= 3 in r2; 2 more rules." in page


async def test_names_are_text_and_cannot_hide(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    index(path, write_swift(tmp_path / "run", {"<b>x\u202e": [0.0], "Format": [1.0]}))
    datasette = Datasette([str(path)])
    for address, _ in (PLACES[place] for place in PLACES if place != "chart"):
        page = await get(datasette, address)
        assert "<b>x" not in page
        assert "\u202e" not in page
        assert "the sum of <b>x" in words(page)


async def test_an_index_from_before_the_sums_of_rewards_says_the_rule_alone(tmp_path: Path) -> None:
    path = indexed_sum(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("drop table step_values")
    assert "success is reward >= 1 ·" in words(await get(Datasette([str(path)]), f"{HERE}/prompt/1/1"))


@pytest.mark.parametrize(("env", "said"), [("a", "made of x and y"), ("b", ""), (None, "")])
async def test_what_is_of_one_environment_names_the_rewards_of_that_one(
    tmp_path: Path, env: str | None, said: str
) -> None:
    rows = [
        {"env": "a", "prompt": "a", "reward": 1.0, "rewards.x.score": 1.0, "rewards.y.score": 0.0},
        {"env": "b", "prompt": "b", "reward": 1.0, "rewards.x.score": 1.0},
        {"env": None, "prompt": "c", "reward": 1.0},
    ]
    path = make_index(tmp_path / "index.sqlite", rows, rule=("reward", 1.0))
    with closing(sqlite3.connect(path)) as connection:
        [(own, group, prompt)] = connection.execute(
            """
            select t.id, g.id, g.prompt_id from trajectories t join prompt_groups g on g.id = t.prompt_group_id
            where t.env is ?
            """,
            (env,),
        )
    datasette = Datasette([str(path)])
    page = words(await get(datasette, f"{HERE}/trajectory/{own}", 403))  # there is no such file
    assert f"✓ passed (reward >= 1{said and f', {said}'}) reward 1 " in page
    for place in (f"group/{group}", f"prompt/1/{prompt}"):
        assert f"success is reward >= 1{said and f' ({said})'} ·" in words(await get(datasette, f"{HERE}/{place}"))


@pytest.mark.parametrize("trajectories", [0, 2])
async def test_a_step_of_which_nothing_is_scored_says_so_and_why(tmp_path: Path, trajectories: int) -> None:
    path = make_index(tmp_path / "index.sqlite", [{"step": 1, "reward": 0.5}] * 2, rule=("metrics.x", 1.0))
    if not trajectories:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("update steps set trajectories = 0")
    page = words(await get(Datasette([str(path)]), f"{HERE}/step/1/1"))
    assert f"Step 1 no pass rate: {'2 unscored' if trajectories else 'no trajectory'}, mean reward 0.500" in page
    why = ", which no trajectory here records" if trajectories else ""
    assert f"success is metrics.x >= 1{why} previous step" in page


@pytest.mark.parametrize("unscored", [[], ["code"], ["code", "games"]])
async def test_a_run_names_the_environments_that_its_rule_says_nothing_of(tmp_path: Path, unscored: list[str]) -> None:
    rows = [{"env": "math", "metrics.x": 1.0}, {"env": "math"}, *({"env": env} for env in unscored)]
    path = make_index(tmp_path / "index.sqlite", rows, rule=("metrics.x", 1.0))
    said = words(await get(Datasette([str(path)]), f"{HERE}/run/1"))
    which = f", which no trajectory of {', '.join(unscored)} records" if unscored else ""
    assert f"success is metrics.x >= 1{which} ·" in said


# Of each run the environments of which something is scored, and those of which nothing is.
UNSCORED_ENVS = {
    "one run": ([("math", "code games")], "Success is metrics.x >= 1. Unscored are all trajectories of code, games."),
    "all scored": ([("math code", "")], "Success is metrics.x >= 1. Pass rate"),
    "nothing scored": ([("", "math code")], "Success is metrics.x >= 1. Pass rate"),
    "several": (
        [("math", "code"), ("math code", ""), ("", "math"), ("games", "code"), ("games", "math code")],
        "Success is metrics.x >= 1. Unscored are all trajectories of code, math in r4; of code in r3, r0.",
    ),
    "many": (
        [("math", f"e{number}") for number in range(10)],
        "of e9 in r9; of e8 in r8; of e7 in r7; of e6 in r6; of e5 in r5; of e4 in r4; of e3 in r3; of e2 in r2; "
        "2 more. Pass rate",
    ),
}


@pytest.mark.parametrize("name", UNSCORED_ENVS)
async def test_the_overview_names_the_environments_that_a_rule_says_nothing_of(tmp_path: Path, name: str) -> None:
    runs, said = UNSCORED_ENVS[name]
    rows = [
        {"run": f"r{number}", "env": env, "prompt": env, "metrics.x": score}
        for number, envs in enumerate(runs)
        for score, names in zip((1.0, None), envs, strict=True)
        for env in names.split()
    ]
    # In an environment with a score, what has none is no news.
    rows += [{**row, "metrics.x": None, "step": 2} for row in rows if row["metrics.x"]]
    path = make_index(tmp_path / "index.sqlite", rows, rule=("metrics.x", 1.0))
    assert said in words(await get(Datasette([str(path)]), f"{HERE}/"))


@pytest.mark.threat("T40")
async def test_who_may_not_see_prompt_groups_is_told_of_none_on_the_overview(tmp_path: Path) -> None:
    rows = [{"env": "math", "metrics.x": 1.0}, {"env": "code", "metrics.x": None}]
    path = make_index(tmp_path / "index.sqlite", rows, rule=("metrics.x", 1.0))
    hidden = {"databases": {"index": {"tables": {"prompt_groups": {"allow": {"id": "root"}}}}}}
    for settings, is_told in ((None, True), (hidden, False)):
        page = words(await get(Datasette([str(path)], metadata=settings), f"{HERE}/"))
        assert ("Unscored are all trajectories of code." in page) is is_told


async def test_a_run_of_which_nothing_is_scored_says_so_beside_its_rule(tmp_path: Path) -> None:
    path = make_index(tmp_path / "index.sqlite", [{"reward": 1.0}], rule=("metrics.x", 1.0))
    assert "success is metrics.x >= 1, which no trajectory records ·" in words(
        await get(Datasette([str(path)]), f"{HERE}/run/1")
    )


# Of each prompt its value at metrics.x and its reward, and what is said of those that have no score.
NO_SCORE = "have no score by the success rule, and are in neither list:"
BY_REWARD = "Whoever keeps the index sets another rule with rltracer success 'an index.sqlite' --rule 'reward >= 1'"
WITHOUT_SCORE = {
    "some": (
        [(1, 1), (None, 1), (None, 0), (None, None)],
        f"3 of 4 prompts {NO_SCORE} 2 have rewards, but no metrics.x, and 1 has no reward. {BY_REWARD} Hardest",
    ),
    "no reward": ([(1, 1), (None, None), (None, None)], f"2 of 3 prompts {NO_SCORE} they have no reward. Hardest"),
    "one, always passed": (
        [(1, 1), (None, 0)],
        "1 of 2 prompts has no score by the success rule, and is in neither list: it has rewards, but no metrics.x. "
        f"{BY_REWARD} Hardest",
    ),
    "all": (
        [(None, 1), (None, 1)],
        f"No prompt is scored by the success rule: the 2 prompts have rewards, but no metrics.x. {BY_REWARD} Hardest",
    ),
    "the only one": (
        [(None, None)],
        "No prompt is scored by the success rule: the only prompt has no reward. Whoever keeps the index sets another "
        "rule with rltracer success 'an index.sqlite' --rule 'PATH >= NUMBER' Hardest",
    ),
    "none": ([(1, 1), (1, 0)], "Of 2 scored prompts 0 never passed and 2 always did. Hardest"),
}


@pytest.mark.parametrize("name", WITHOUT_SCORE)
async def test_a_run_says_why_prompts_have_no_score_and_what_sets_another_rule(tmp_path: Path, name: str) -> None:
    prompts, said = WITHOUT_SCORE[name]
    rows = [{"prompt": f"p{n}", "metrics.x": right, "reward": reward} for n, (right, reward) in enumerate(prompts)]
    path = make_index(tmp_path / "an index.sqlite", rows, rule=("metrics.x", 1.0))
    page = await get(Datasette([str(path)]), "/-/rltracer/an~20index/run/1")
    assert said in words(page)
    assert str(tmp_path) not in page


async def test_the_other_rule_is_that_of_the_run_alone_where_an_index_has_several(tmp_path: Path) -> None:
    rows = [{"run": run, "reward": None} for run in ("one", "two")]
    path = make_index(tmp_path / "index.sqlite", rows)
    page = await get(Datasette([str(path)]), f"{HERE}/run/2")
    assert "sets another rule with rltracer success index.sqlite 2 --rule 'PATH >= NUMBER'" in words(page)


async def test_names_in_the_reason_are_text_and_cannot_hide(tmp_path: Path) -> None:
    path = make_index(tmp_path / "index.sqlite", [{"reward": 1.0}], rule=("metrics.<b>x\u202e", 1.0))
    page = await get(Datasette([str(path)]), f"{HERE}/run/1")
    assert "the only prompt has rewards, but no metrics.<b>x" in words(page)
    assert "<b>x" not in page
    assert "\u202e" not in page


async def test_a_run_of_which_nothing_is_read_yet_has_no_prompts_without_a_score(tmp_path: Path) -> None:
    path = make_index(tmp_path / "index.sqlite", [{"reward": 1.0}])
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in ("trajectories", "prompt_groups", "step_values", "steps"):
            connection.execute(f"delete from {table}")
    page = words(await get(Datasette([str(path)]), f"{HERE}/run/1"))
    assert "No prompt of this run is scored." in page
    assert "by the success rule" not in page
    assert "which no trajectory" not in page
