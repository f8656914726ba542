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
