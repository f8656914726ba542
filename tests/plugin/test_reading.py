"""Around a trajectory: neighbours under a filter, permanent links to messages, episodes, branches, views."""

from __future__ import annotations

import html
import json
import re
import sqlite3
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from datasette.app import Datasette

from tests.indexing import index
from tests.layouts.records import episode, message, nodes_of, trace

from .conftest import TRACES, get, read, write_run
from .html import links, query_of, words

pytestmark = pytest.mark.asyncio
BASE = "/-/rltracer/run/trajectory"


@pytest.mark.parametrize(
    ("number", "query", "previous", "following", "said"),
    [
        (3, "", None, 2, "1 of 3 in its prompt group"),
        (2, "", 3, 4, "2 of 3 in its prompt group"),
        (3, "?_sort=reward", 2, 4, "2 of 3 in its prompt group"),
        (2, "?success__notnull=1", 3, None, "2 of 2 where success is not null"),
        (4, "?success__notnull=1", None, 3, "not among the 2 where success is not null"),
    ],
)
async def test_previous_and_next_stay_under_the_filter(datasette, number, query, previous, following, said):
    page = await read(datasette, number, query)
    assert said in words(page)
    for text, other in (("previous", previous), ("next", following)):
        assert links(page, text) == ([f"{BASE}/{other}{query}"] if other else [])


async def test_the_group_is_reached_under_the_filters_of_groups_and_rows(datasette):
    query = "?env=counting&_sort=pass_rate&success=1"
    page = await read(datasette, 3, query)
    [address] = links(page, "group")
    assert query_of(address) == {"env": "counting", "_sort": "pass_rate", "success": "1"}
    assert "group 1 of 2 in this index where env" in words(await get(datasette, address))


async def test_branch_start_and_view_are_not_handed_to_other_trajectories(datasette):
    page = await read(datasette, 2, "?branch=1&start=0&full=1")
    assert links(page, "next") == [f"{BASE}/4"]
    assert links(await read(datasette, 2, "?view=raw"), "next") == [f"{BASE}/4?view=raw"]


@pytest.mark.parametrize(("number", "words_", "other"), [(3, "the worst", 2), (2, "the best", 3), (4, "the best", 3)])
async def test_a_trajectory_is_compared_with_the_other_end_of_its_group(datasette, number, words_, other):
    page = await read(datasette, number)
    assert links(page, f"compare with {words_}") == [f"/-/rltracer/run/compare?a={number}&b={other}"]


async def test_where_nothing_is_scored_the_strip_has_the_rewards(tmp_path):
    said = [message("user", "Pick one."), message("assistant", "left")]
    write_run(tmp_path / "run", [trace(said, id=f"t{reward}", rewards={"r": reward}) for reward in (0.25, 0.7333)])
    index(tmp_path / "run.sqlite", tmp_path / "run")
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as connection, connection:
        connection.execute("update trajectories set success = null")
    page = await read(Datasette([str(tmp_path / "run.sqlite")]), 1)
    assert re.findall(r'<span class="worth" aria-hidden="true">([^<]+)<', page) == ["0.733", "0.250"]
    assert "no pass rate: 2 unscored" in words(page)


async def test_a_message_has_a_permanent_link(datasette):
    page = await read(datasette, 2, "?branch=1")
    [address] = links(page, "#2")
    assert address == "/-/rltracer/run/t/run/forked?branch=1&message=1#m1"
    response = await datasette.client.get(address.partition("#")[0])
    assert response.headers["location"] == f"{BASE}/2?branch=1&message=1"
    assert 'id="m1"' in await get(datasette, response.headers["location"])


async def test_a_permanent_link_survives_a_new_index_with_other_numbers(folder, datasette):
    page = await read(datasette, 2, "?branch=1")
    [address] = links(page, "#2")
    (folder / "run.sqlite").unlink()
    write_run(folder / "earlier", [trace([message("user", "Another.")], id=f"e{number}") for number in range(3)])
    index(folder / "run.sqlite", folder / "earlier")
    index(folder / "run.sqlite", folder / "run")
    again = Datasette([str(folder / "run.sqlite")])
    location = (await again.client.get(address.partition("#")[0])).headers["location"]
    assert location == f"{BASE}/5?branch=1&message=1"
    assert re.search(r'id="m1".*?left', await get(again, location), re.DOTALL)


async def test_a_run_of_any_name_has_permanent_links(tmp_path):
    write_run(tmp_path / "a b~%2F é", [trace([message("user", "hi")], id="x/y")])
    index(tmp_path / "run.sqlite", tmp_path / "a b~%2F é")
    datasette = Datasette([str(tmp_path / "run.sqlite")])
    [link] = links(await read(datasette, 1), "permanent link")
    assert (await datasette.client.get(link)).headers["location"] == f"{BASE}/1"


async def test_a_name_wins_over_a_number(folder, serve):
    import sqlite3

    connection = sqlite3.connect(folder / "run.sqlite")
    connection.execute(
        "insert into runs select 7, '1', 'x', source, tokenizer, mapping, step_kind, success_path,"
        " success_threshold, success_chosen, created_at, indexed_at from runs"
    )
    connection.commit()
    connection.close()
    await get(serve(), "/-/rltracer/run/t/1/passed", 302)


@pytest.fixture
def long(serve_traces):
    said = [message("user", f"line {number}.") for number in range(450)]
    return serve_traces([trace(said, id="long")])


@pytest.mark.parametrize("view", ["", "&view=raw"])
@pytest.mark.parametrize(("wanted", "first"), [(0, 1), (199, 1), (200, 201), (449, 450), (9999, 1)])
async def test_a_message_is_found_on_whatever_page_it_is(long, wanted, first, view):
    page = await read(long, 1, f"?message={wanted}{view}")
    assert f"messages {first} – " in page
    assert (f'id="m{wanted}"' in page) == (wanted < 450)


@pytest.mark.parametrize("view", ["", "&view=raw"])
@pytest.mark.parametrize(
    ("asked", "shown"), [("message=450", "450"), ("start=450", "450"), ("message=%3Cb%3E", "<b>"), ("start=-1", "-1")]
)
async def test_a_message_that_is_not_there_is_said_and_the_first_ones_are_shown(long, asked, shown, view):
    text = words(await read(long, 1, f"?{asked}{view}"))
    assert f"There is no message “{shown}”: this branch has 450, counted from 0 in an address." in text
    assert "messages 1 – 200 of 450" in text


async def test_of_a_message_that_is_there_nothing_is_said(long):
    assert "There is no message" not in await read(long, 1, "?message=449&start=0")


async def test_a_tool_result_is_found_with_its_call(datasette):
    page = await read(datasette, 1, "?message=3")
    assert 'id="m3"' in page
    assert 'id="m0"' in page


@pytest.fixture
def family(tmp_path):
    """Return an index of an episode of a solver and two helpers, and of one that is alone."""
    file = tmp_path / "run" / TRACES
    file.parent.mkdir(parents=True)
    said = [message("user", "Go."), message("assistant", "Gone.")]
    together = [trace(said, id=f"t{number}", agent=agent) for number, agent in enumerate(["solver", "helper", "<b>"])]
    episodes = [episode(together, step=1, group="g"), episode([trace(said, id="alone")], step=1, group="g")]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in episodes))
    index(tmp_path / "run.sqlite", tmp_path / "run")
    return Datasette([str(tmp_path / "run.sqlite")])


async def test_the_other_traces_of_an_episode_are_linked(family):
    page = await read(family, 1)
    assert "This episode has 3 traces: solver" in words(page)
    assert links(page, "helper") == [f"{BASE}/2"]
    assert links(page, "<b>") == [f"{BASE}/3"]
    assert "This episode" not in await read(family, 4)


@pytest.fixture
def branched(serve_traces):
    said = [message("user", "Pick."), *(message("assistant", text) for text in ("left", "right", "left"))]
    nodes = nodes_of(said, [None, 0, 0, 0])
    nodes[2]["sampled"] = False
    return serve_traces([trace(nodes=nodes, id="three")])


async def test_branches_are_a_tree_with_equal_ones_folded(branched):
    text = words(await read(branched, 1))
    assert "3 branches, this is branch 3" in text
    assert "message 1, shared branch 3 message 2 sampled 1 with the same messagesbranch 1 sampled" in text
    assert "branch 2 message 2 nothing sampled" in text


async def test_a_branch_keeps_the_view(branched):
    page = await read(branched, 1, "?view=raw")
    assert links(page, "branch 2") == [f"{BASE}/1?branch=2&view=raw#m1"]


async def test_code_stands_in_blocks(serve_traces):
    page = await read(serve_traces([trace([message("user", "Run\n```sh\nls <dir>\n```\nplease")])]), 1)
    assert '<pre class="code" data-language="sh">' in page
    assert "ls &lt;dir&gt;" in page


async def test_the_way_down_leads_through_run_step_and_group(datasette):
    page = await read(datasette, 3)
    crumbs = page[page.index('class="crumbs"') : page.index("</p>")]
    found = [html.unescape(address) for address in re.findall(r'href="([^"]+)"', crumbs)]
    assert "prompt group 2 of prompt " in words(crumbs)
    assert found == ["/", "/run", "/-/rltracer/run/", "/-/rltracer/run/run/1", "/-/rltracer/run/step/1/1",
                     "/-/rltracer/run/group/2"]  # fmt: skip
    for address in found:
        assert urlsplit(address).path == address
        await get(datasette, address)
