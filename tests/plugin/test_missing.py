"""What is not there is answered with what is: links to the nearest steps, numbers and runs that the visitor may see."""

from __future__ import annotations

import re
import shutil
from html import unescape

import pytest
from datasette.app import Datasette

from datasette_rltracer import access
from tests.index_factory import make_index

from .conftest import get
from .html import words

pytestmark = pytest.mark.asyncio
OWN = "/-/rltracer/index"


@pytest.fixture
def database(tmp_path):
    steps = (2, 5, 9, None)
    rows = [{"run": run, "step": step, "reward": 1.0} for run in ("first", "second <b>") for step in steps]
    return make_index(tmp_path / "index.sqlite", rows)


@pytest.fixture
def datasette(database):
    return Datasette([str(database)])


def listed(page):
    """Return the (words, address) of the links of the page's list."""
    items = re.findall(r'<li><a href="([^"]*)">(.*?)</a></li>', page[page.index("What there is") :])
    return [(words(inside), unescape(address)) for address, inside in items]


def step_ways(*steps):
    return [(f"step {step}, {place}", f"{OWN}/step/1/{step}") for step, place in steps]


@pytest.mark.parametrize(
    ("asked", "ways"),
    [
        ("7", [(2, "the first"), (5, "the one before"), (9, "the last")]),
        ("3", [(2, "the first"), (5, "the one after"), (9, "the last")]),
        ("99999999999999999999"[:19], [(2, "the first"), (9, "the last")]),
        ("-1", [(2, "the first"), (9, "the last")]),
    ],
)
async def test_a_step_that_a_run_has_not_is_answered_with_those_it_has(datasette, asked, ways):
    page = await get(datasette, f"{OWN}/step/1/{asked}", 404)
    assert "The run first has no step" in words(page)
    assert listed(page) == [
        *step_ways(*ways), ("all steps of first", f"{OWN}/run/1#steps"), ("all runs of this index", f"{OWN}/"),
    ]  # fmt: skip


RUNS = [
    ("the run second <b>, number 2", f"{OWN}/run/2"), ("the run first, number 1", f"{OWN}/run/1"),
    ("all runs of this index", f"{OWN}/"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("run/9", "This index has no run number 9."),
        ("step/9/1", "This index has no run number 9."),
        ("run/9/charts", "This index has no run number 9."),
        ("t/third/x", "This index has no run named third."),
    ],
)
async def test_a_run_that_there_is_not_is_answered_with_the_runs(datasette, path, sentence):
    page = await get(datasette, f"{OWN}/{path}", 404)
    assert sentence in words(page)
    assert sorted(listed(page)[:2]) == sorted(RUNS[:2])
    assert listed(page)[2:] == RUNS[2:]


@pytest.mark.parametrize("path", ["trajectory/20", "trajectory/20/record", "compare?a=1&b=20", "compare?a=20"])
async def test_a_trajectory_that_there_is_not_is_answered_with_the_nearest(datasette, path):
    page = await get(datasette, f"{OWN}/{path}", 404)
    assert "This index has no trajectory 20." in words(page)
    assert listed(page)[:2] == [
        ("trajectory 1, the first", f"{OWN}/trajectory/1"), ("trajectory 8, the last", f"{OWN}/trajectory/8")
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["group/20", "compare?group=20"])
async def test_a_group_that_there_is_not_is_answered_with_the_nearest(datasette, path):
    page = await get(datasette, f"{OWN}/{path}", 404)
    assert "This index has no prompt group 20." in words(page)
    assert listed(page)[1] == ("prompt group 8, the last", f"{OWN}/group/8")


async def test_a_recorded_id_that_a_run_has_not_leads_to_the_run(datasette):
    page = await get(datasette, f"{OWN}/t/first/nobody", 404)
    assert "The run first has no trajectory with the id nobody." in words(page)
    assert listed(page)[0] == ("the run first, number 1", f"{OWN}/run/1")


async def test_a_group_whose_rewards_are_equal_is_no_missing_group(datasette):
    page = await get(datasette, f"{OWN}/compare?group=1", 404)
    assert "no two trajectories of different reward" in words(page)
    assert listed(page)[0] == ("prompt group 1", f"{OWN}/group/1")


async def test_a_chart_that_there_is_not_is_answered_with_the_charts(datasette):
    page = await get(datasette, f"{OWN}/run/1/charts/rewards?env=math", 404)
    assert ("the chart reward", f"{OWN}/run/1/charts/reward?env=math") in listed(page)


@pytest.mark.parametrize("path", ["step/1/x", "steps", "run"])
async def test_an_address_that_no_page_has_leads_to_the_overview(datasette, path):
    page = await get(datasette, f"{OWN}/{path}", 404)
    assert "There is no such page." in words(page)
    assert listed(page) == [("all runs of this index", f"{OWN}/")]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/-/rltracer", "Which index?"),
        ("/-/rltracer/nowhere", "There is no database of this name."),
        ("/-/rltracer/nowhere/step/1/1", "There is no database of this name."),
    ],
)
async def test_a_database_that_there_is_not_is_answered_with_the_indexes(datasette, path, sentence):
    page = await get(datasette, path, 404)
    assert sentence in words(page)
    assert listed(page) == [("the index index", f"{OWN}/")]


@pytest.mark.parametrize("path", ["/-/rltracer", "/-/rltracer/nowhere/", "/-/rltracer/other/nothing"])
@pytest.mark.parametrize("table", ["trajectories", "runs", "steps", None])
async def test_only_what_a_visitor_may_see_is_named(database, tmp_path, path, table):
    other = make_index(tmp_path / "other.sqlite", [{"run": "secret", "reward": 1.0}])
    only = {"allow": {"id": "root"}}
    denied = {"other": only if table is None else {"tables": {table: only}}}
    datasette = Datasette([str(database), str(other)], metadata={"databases": denied})
    await datasette.invoke_startup()
    page = await get(datasette, path, 404, follow_redirects=True)
    assert listed(page) == [("the index index", f"{OWN}/")]
    cookies = {"ds_actor": datasette.sign({"a": {"id": "root"}}, "actor")}
    seen = await get(datasette, path, 404, follow_redirects=True, cookies=cookies)
    assert "/-/rltracer/other/" in [address for _, address in listed(seen)]


async def test_an_index_is_named_behind_many_that_a_visitor_may_not_see(database, tmp_path, monkeypatch):
    monkeypatch.setattr(access, "MOST_INDEXES", 2)
    others = [tmp_path / f"a{number}.sqlite" for number in range(4)]
    for other in others:
        shutil.copy(database, other)
    denied = {other.stem: {"allow": {"id": "root"}} for other in others[:3]}
    datasette = Datasette([*map(str, others), str(database)], metadata={"databases": denied})
    page = await get(datasette, "/-/rltracer", 404)
    assert listed(page) == [("the index a3", "/-/rltracer/a3/"), ("the index index", f"{OWN}/")]


async def test_without_an_index_nothing_is_named(database):
    datasette = Datasette([str(database)], metadata={"allow": {"id": "root"}})
    page = words(await get(datasette, "/-/rltracer", 404))
    assert "No index of rollouts that you may see is served here." in page
    assert "What there is" not in page


async def test_programs_get_json(datasette):
    response = await datasette.client.get(f"{OWN}/trajectory/20.json")
    assert (response.status_code, response.json()["error"]) == (404, "This index has no trajectory 20.")


async def test_the_page_stays_below_the_base_url_and_has_our_headers(database):
    datasette = Datasette([str(database)], settings={"base_url": "/prefix/"})
    response = await datasette.client.get(f"{OWN}/step/1/7")
    assert all(address.startswith("/prefix/") for _, address in listed(response.text))
    assert response.headers["content-security-policy"].startswith("object-src 'none'")


@pytest.mark.parametrize("uid", ["%3Cscript%3Ealert(1)", "~3Cscript~3Ealert(1)", "~E2~80~AE" + "x" * 500])
async def test_what_was_asked_for_is_only_text(datasette, uid):
    page = await get(datasette, f"{OWN}/t/first/{uid}", 404, follow_redirects=True)
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "x" * 100 not in page


async def test_pages_of_datasette_are_left_to_it(datasette):
    for path in ("/nowhere", "/index/nowhere", "/-/nowhere", "/-/rltracers"):
        assert "What there is" not in await get(datasette, path, 404)
