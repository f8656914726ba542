"""In an index of several runs, what the pages of one run lead to is of that run."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from datasette.app import Datasette

from tests.commands import rltracer
from tests.indexing import index, made_before, rows
from tests.layouts.records import message, trace

from .conftest import get, traces, write_run
from .html import links, visible_text, words

pytestmark = pytest.mark.asyncio
BASE = "/-/rltracer/run/"
RUN = "run = &#34;first&#34;"
# Of each run: its pages, by the ids that its rows have.
OF_RUN = {
    1: ["run/1", "step/1/1", "step/1/1?split=train", "prompt/1/1", "group/1", "trajectory/1", "trajectory/4",
        "run/1/charts", "run/1/charts/reward", "compare?a=1&b=2", "search?run_id=1", "search?run_id=1&q=pick",
        "export?run_id=1", "export?_table=prompt_groups&run_id=1"],
    2: ["run/2", "step/2/1", "step/2/1?split=train", "prompt/2/2", "group/3", "trajectory/5", "compare?a=5&b=6",
        "search?run_id=2&q=pick", "export?run_id=2"],
}  # fmt: skip
PAGES = [(run, page) for run, pages in OF_RUN.items() for page in pages]
RUN_OF = {
    "shard_id": "select run_id from shards where id = ?",
    "prompt_group_id": "select run_id from prompt_groups where id = ?",
}


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Return an index of two runs with the same prompts: what could not be read is all of the second."""
    folder = tmp_path_factory.mktemp("two")
    write_run(folder / "first", traces())
    others = [{**one, "id": f"other-{number}"} for number, one in enumerate(traces())]
    with write_run(folder / "second", [*others, trace([message("user", "Only here?")], id="only")]).open("a") as file:
        file.write("{broken\n[]\n")
    for run in ("first", "second"):
        index(folder / "run.sqlite", folder / run)
    assert rltracer("fts", folder / "run.sqlite").returncode == 0
    return folder / "run.sqlite"


async def found(datasette, address):
    """Return the rows that a table page of Datasette's would show."""
    place = urlsplit(address)
    answer = await datasette.client.get(f"{place.path}.json?{place.query}&_shape=array&_size=max")
    assert answer.status_code == 200, address
    return answer.json()


def run_of(database, row):
    if "run_id" in row:
        return row["run_id"]
    [(column, sql)] = [(column, sql) for column, sql in RUN_OF.items() if column in row]
    return rows(database, sql, (row[column],))[0][0]


@pytest.mark.parametrize(("run", "page"), PAGES, ids=[page for _, page in PAGES])
async def test_every_table_that_a_page_of_a_run_leads_to_is_of_that_run(two, run, page):
    datasette = Datasette([str(two)])
    text = await get(datasette, BASE + page)
    tables = {html.unescape(one) for one in re.findall(r'href="(/run/\w+\?[^"]*)"', text)}
    assert tables or page.startswith(("trajectory", "compare", "search", "export")) or "/charts" in page
    for address in tables:
        assert {run_of(two, row) for row in await found(datasette, address)} <= {run}, address


@pytest.mark.parametrize(("run", "page"), PAGES, ids=[page for _, page in PAGES])
async def test_search_and_export_above_a_page_of_a_run_stay_in_it(two, run, page):
    datasette = Datasette([str(two)])
    text = await get(datasette, BASE + page)
    for name in ("search", "export"):
        address = links(text[text.index('class="beside-crumbs"') :], name)[0]
        asked = dict(parse_qsl(urlsplit(address).query))
        of_group = rows(two, RUN_OF["prompt_group_id"], (asked.get("prompt_group_id"),))
        assert asked.get("run_id") == str(run) or of_group == [(run,)], address
        led = await get(datasette, address)
        assert "Training data from all runs" not in words(led)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("", "all runs"), ("run/1", "the run first"), ("step/1/1", "step 1 of the run first"),
        ("run/2/charts", "the run second"), ("run/2/charts/reward?split=train", "the run second"),
        ("step/2/1", "step 1 of the run second"), ("prompt/1/2", "prompt 2 of the run first"),
        ("group/2", "prompt group 2"), ("trajectory/1", "the run first"), ("compare?a=1&b=2", "the run first"),
        ("compare?a=1&b=6", "all runs"), ("search", "all runs"), ("search?run_id=2", "the run second"),
        ("search?run_id=2&q=pick", "the run second"), ("export?run_id=2&step=1", "step 1 of the run second"),
    ],
)  # fmt: skip
async def test_the_export_above_a_page_is_of_what_the_page_is_of(two, page, said):
    datasette = Datasette([str(two)])
    text = await get(datasette, BASE + page)
    [address] = links(re.split("<main|<figure", text[text.index('class="beside-crumbs"') :])[0], "export")
    [title] = re.findall(r"<title>(.*?)</title>", await get(datasette, address))
    assert visible_text(html.unescape(title)).endswith(f"training data from {said}") or title.endswith(f"from {said}")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("run/1", [RUN]),
        ("step/1/1", [RUN, "step = 1"]),
        ("group/1", [RUN]),
        ("", []),
    ],
)
async def test_a_search_says_where_it_stays_before_anything_is_asked(two, page, said):
    datasette = Datasette([str(two)])
    [address] = links((await get(datasette, BASE + page)).split("<main")[0], "search")
    text = await get(datasette, address)
    assert re.findall(r'class="chip">(.*?) <a', text) == said
    kept = r'<option value="(1)" selected>|type="hidden" name="step" value="(1)"'  # the run is a choice of the form
    assert len(re.findall(kept, text)) == len(said)


async def test_no_problems_of_a_run_are_not_those_of_another(two):
    datasette = Datasette([str(two)])
    counts = {}
    for run in (1, 2):
        text = await get(datasette, f"{BASE}run/{run}")
        problems = text[text.index('id="problems"') :]
        assert words(problems).split(" · ")[0].endswith(["0 problems", "2 problems"][run - 1])
        counts[run] = len(await found(datasette, links(problems, "as a table")[0]))
    assert counts == {1: 0, 2: 2}


async def test_an_index_from_before_that_view_has_no_such_table(two, tmp_path):
    old = tmp_path / "run.sqlite"
    old.write_bytes(two.read_bytes())
    made_before("m004_run_problems", old)
    text = await get(Datasette([str(old)]), f"{BASE}run/2")
    [heading] = re.findall(r'<div class="list-head"><h2 id="problems">.*?</div>', text, re.DOTALL)
    assert "2 problems" in words(heading)
    assert links(heading, "as a table") == []
