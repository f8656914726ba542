"""The trajectory's pages, end to end: real files, a real index, whichever Datasette is installed."""

from __future__ import annotations

import html
import re
import sqlite3
from urllib.parse import unquote

import pytest
from datasette.app import Datasette

from tests.indexing import value
from tests.layouts.records import message, trace

from .conftest import PIXEL, get, read
from .html import words

pytestmark = pytest.mark.asyncio
BASE = "/-/rltracer/run/trajectory"


async def test_a_conversation_is_shown_whole(datasette):
    page = await read(datasette, 1)
    for text in ("You count things.", "How many gaskets?", "14 stock.csv", "Once more.", "Sum first, then compare."):
        assert html.escape(text) in page
    assert page.count('<article class="message') == 5  # two of the seven messages are results beside their calls
    assert f' loading="lazy" alt="image in this message" width="40" height="30" src="{PIXEL}">' in page
    assert re.search(r"<pre [^>]*>\nwc -l\nstock.csv</pre>", page)
    assert "arguments are not JSON, shown as recorded" in page
    assert re.search(r"<details class=\"folded reasoning\"[^>]*><summary>Reasoning · 24 characters", page)


async def test_the_headline_and_the_facts(datasette):
    page = await read(datasette, 1)
    assert re.search(r'<span class="outcome pass">.*?✓</span> passed</span>', page)
    assert "✓ passed (reward >= 1, made of correct, format and right) reward 1.125 advantage" in words(page)
    assert "<dt>format</dt><dd>0.5 × 0.25</dd>" in page
    assert words(page).count("advantage") == 1
    assert "advantage <b>+0.25</b>" in page
    assert "<dt>num_turns</dt><dd>3</dd>" in page
    assert '<dt>mean logprob</dt><dd class="muted">not recorded</dd>' in page
    assert "stopped: agent_completed" in page


async def test_the_place_of_the_record(datasette, folder):
    page = await read(datasette, 2)
    offset, length = (
        value(folder / "run.sqlite", f"select {column} from trajectories where id = 2")
        for column in ("byte_offset", "byte_length")
    )
    assert "rollouts/step_1/train/all/traces.jsonl" in page
    assert f"line 2 · trajectory 1 in it · bytes {offset:,} – {offset + length - 1:,}" in page


async def test_siblings_differ_in_shape_as_well_as_in_colour(datasette):
    page = await read(datasette, 2)
    cells = re.findall(r'<a class="cell (\w+)" href="([^"]+)"( aria-current="page")?[^>]*>.*?>(.)</span>', page)
    assert [(kind, current != "", mark) for kind, _, current, mark in cells] == [
        ("pass", False, "✓"),
        ("fail", True, "✗"),
        ("none", False, "–"),
    ]
    assert [address for _, address, _, _ in cells] == [f"{BASE}/{number}" for number in (3, 2, 4)]
    assert "2 of 3 in its prompt group" in page
    assert "pass rate 1 / 2, 1 unscored" in page
    assert 'rel="prev" data-key="p">previous' in page
    assert 'rel="next" data-key="n">next' in page


async def test_the_id_of_a_trajectory_is_in_the_title_the_head_and_the_facts(datasette):
    page = await read(datasette, 3)
    assert "trajectory 3" in re.findall(r"<title>(.*?)</title>", page, re.DOTALL)[0]
    assert "<h1>Trajectory 3</h1>" in page
    assert '<dt>id</dt><dd class="mono" data-copy="id">3</dd>' in page
    assert '<dd class="mono" data-copy="recorded id">passed</dd>' in page


@pytest.mark.parametrize("asked", ["foo", "%3Cb%3Eraw", "x" * 200])
async def test_a_view_that_there_is_not_is_said(datasette, asked):
    page = await read(datasette, 3, f"?view={asked}")
    shown = unquote(asked) if len(asked) <= 60 else "x" * 59 + "…"
    assert f"no view “{shown}”, so this is “conversation”; known are conversation, raw, tokens." in words(page)
    assert "<b>raw" not in page
    assert "so this is" not in await read(datasette, 3, "?view=raw")


async def test_every_branch_can_be_read_and_none_is_merged(datasette):
    last, first = await read(datasette, 2), await read(datasette, 2, "?branch=1")
    assert ">right</div>" in last
    assert ">left</div>" not in last
    assert ">left</div>" in first
    assert ">right</div>" not in first
    assert f'href="{BASE}/2?branch=1#m1"' in last


async def test_errors_are_said(datasette):
    page = await read(datasette, 4)
    assert "<b>SandboxError</b> The sandbox did not start." in page
    assert "unscored" in page
    assert '<dt>total</dt><dd class="muted">not recorded</dd>' in page


@pytest.mark.parametrize("query", ["?branch=3", "?branch=0", "?branch=99999999999"])
async def test_an_unknown_branch_is_not_found(datasette, query):
    assert "branch" in await read(datasette, 2, query, status=404)


@pytest.mark.parametrize("query", ["?branch=x", "?branch=-1", "?branch=", "?branch=" + "9" * 30])
async def test_a_branch_is_a_number(datasette, query):
    await read(datasette, 2, query, status=400)


@pytest.mark.parametrize(
    "path",
    [
        f"{BASE}/99",
        f"{BASE}/99.json",
        f"{BASE}/99/record",
        f"{BASE}/9223372036854775807",
        "/-/rltracer/nope/trajectory/1",
        "/-/rltracer/run/t/1/nobody",
        "/-/rltracer/run/t/7/passed",
        "/-/rltracer/run/trajectory/one",
    ],
)
async def test_what_does_not_exist_is_not_found(datasette, path):
    await get(datasette, path, 404)


@pytest.mark.parametrize("query", ["", "?branch=1"])
async def test_the_permanent_link_leads_to_the_page(datasette, query):
    response = await datasette.client.get(f"/-/rltracer/run/t/1/passed{query}")
    assert response.status_code == 302
    assert response.headers["location"] == f"{BASE}/3{query}"


async def test_an_id_with_any_characters_has_a_permanent_link(serve_traces):
    uid = "a/b c~d%2F?e#é.json"
    datasette = serve_traces([trace([message("user", "hi")], id=uid)])
    link = re.search(r'href="([^"]+)">permanent link', await read(datasette, 1))[1]
    assert (await datasette.client.get(link)).headers["location"] == f"{BASE}/1"


async def test_a_long_text_is_cut_with_its_size_and_can_be_shown_in_full(serve_traces):
    long = "word " * 5000 + "THE END"
    datasette = serve_traces([trace([message("user", long), message("assistant", "short")])])
    page = await read(datasette, 1)
    assert "THE END" not in page
    assert "20,000 of 25,007 characters shown" in page
    link = html.unescape(re.search(r'href="([^"#]+)[^"]*" rel="nofollow">show all', page)[1])
    assert "THE END" in await get(datasette, link)


async def test_many_messages_come_in_pages(serve_traces):
    datasette = serve_traces([trace([message("user", f"line {n}.") for n in range(450)])])
    page, seen = await read(datasette, 1), []
    assert "messages 1 – 200 of 450" in page
    while page:
        seen += re.findall(r">line (\d+)\.<", page)
        link = re.search(r'class="pager"><a href="([^"]+)" rel="next"', page)
        page = await get(datasette, html.unescape(link[1])) if link else ""
    assert [int(number) for number in seen] == list(range(450))


async def test_links_work_below_a_base_url(serve):
    datasette = serve(settings={"base_url": "/prefix/"})
    page = await read(datasette, 2)
    links = set(re.findall(r'(?:href|src)="(/[^"#]*)', page))
    assert links
    assert all(link.startswith("/prefix/") for link in links)
    location = (await datasette.client.get("/-/rltracer/run/t/1/passed")).headers["location"]
    assert location == f"/prefix{BASE}/3"


async def test_the_stylesheet_is_served(datasette):
    [address] = re.findall(r'href="([^"]*rltracer\.css[^"]*)"', await read(datasette, 1))
    assert ".rltracer .message" in await get(datasette, address)


async def test_every_link_of_a_page_leads_somewhere(datasette):
    links = {html.unescape(link) for link in re.findall(r'href="(/[^"#]+)', await read(datasette, 3))}
    for link in links:
        assert (await datasette.client.get(link)).status_code in (200, 302), link


async def test_the_pages_need_permission_to_view_the_trajectories(serve):
    metadata = {"databases": {"run": {"tables": {"trajectories": {"allow": {"id": "root"}}}}}}
    datasette = serve(metadata=metadata)
    for path in (f"{BASE}/1", f"{BASE}/1.json", f"{BASE}/1/record", f"{BASE}/99", "/-/rltracer/run/t/1/passed"):
        await get(datasette, path, 403)
    cookies = {"ds_actor": datasette.sign({"a": {"id": "root"}}, "actor")}
    assert "Pick one." in await get(datasette, f"{BASE}/3", cookies=cookies)


async def test_a_database_that_is_no_index_has_no_pages(tmp_path):
    connection = sqlite3.connect(tmp_path / "run.sqlite")
    connection.execute("create table trajectories (id integer primary key, uid text)")
    connection.execute("insert into trajectories values (1, 'x')")
    connection.commit()
    connection.close()
    datasette = Datasette([str(tmp_path / "run.sqlite")])
    await get(datasette, f"{BASE}/1", 404)
    assert "/-/rltracer/" not in await get(datasette, "/run/trajectories")
