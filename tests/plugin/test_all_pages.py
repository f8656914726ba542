"""What holds for every page of lists: permissions, base_url, links, menus, and content that means harm."""

from __future__ import annotations

import html
import re

import pytest
from datasette.app import Datasette

from datasette_rltracer import group_page, run_queries, trajectory_page
from datasette_rltracer.queries import Query
from tests.index_factory import make_index
from tests.layouts.records import message, trace

from .conftest import get
from .hostile import PAYLOADS, Elements, hostile_trace
from .html import links, words

pytestmark = pytest.mark.asyncio
BASE = "/-/rltracer/run"
PAGES = ["/", "/run/1", "/step/1/1", "/group/1", "/prompt/1/1", "/trajectory/1", "/trajectory/1?view=raw"]


def denied(table):
    return {"databases": {"run": {"tables": {table: {"allow": {"id": "root"}}}}}}


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_needs_permission_to_view_the_trajectories(serve, page):
    datasette = serve(metadata=denied("trajectories"))
    assert "Pick one." not in await get(datasette, BASE + page, 403)
    cookies = {"ds_actor": datasette.sign({"a": {"id": "root"}}, "actor")}
    await get(datasette, BASE + page, cookies=cookies)


@pytest.mark.parametrize(
    ("table", "page"),
    [
        ("runs", "/"), ("steps", "/"), ("shards", "/"), ("prompts", "/run/1"), ("problems", "/run/1"),
        ("prompts", "/step/1/1"), ("prompt_groups", "/step/1/1"),
        ("prompts", "/group/1"), ("prompt_groups", "/group/1"), ("prompts", "/prompt/1/1"), ("steps", "/prompt/1/1"),
    ],
)  # fmt: skip
async def test_a_page_needs_permission_to_view_what_it_lists(serve, table, page):
    await get(serve(metadata=denied(table)), BASE + page, 403)


@pytest.mark.parametrize("page", PAGES[1:])
async def test_a_page_is_found_for_an_index_only(serve, page):
    await get(serve(), f"/-/rltracer/nope{page}", 404)


@pytest.mark.parametrize("page", PAGES)
async def test_every_link_stays_below_the_base_url(serve, page):
    text = await get(serve(settings={"base_url": "/prefix/"}), BASE + page)
    found = re.findall(r'(?:href|src|action|data-url)="(/[^"]*)', text)
    assert found
    assert all(address.startswith("/prefix/") for address in found)


@pytest.mark.parametrize("page", PAGES)
async def test_every_link_leads_somewhere(datasette, page):
    text = await get(datasette, BASE + page)
    for address in {html.unescape(found) for found in re.findall(r'(?:href|src|action)="(/[^"#]*)', text)}:
        assert (await datasette.client.get(address)).status_code in (200, 302), address


@pytest.mark.parametrize("page", PAGES[:5])
async def test_sql_is_linked_for_those_who_may_write_it(serve, page):
    assert links(await get(serve(), BASE + page), "SQL")
    datasette = serve(settings={"default_allow_sql": False})
    assert not links(await get(datasette, BASE + page), "SQL")


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_names_what_it_shows(datasette, page):
    text = await get(datasette, BASE + page)
    assert re.search(r"<title>run: .*?\S.*?</title>", text)
    assert text.count("<h1") == 1
    assert text.count("<main") == 1
    assert len(re.findall(r' id="([^"]+)"', text)) == len(set(re.findall(r' id="([^"]+)"', text)))


@pytest.fixture
def serve_hostile(serve_traces):
    return lambda text: serve_traces([hostile_trace(text), trace([message("user", "hi")])])


@pytest.mark.parametrize("text", PAYLOADS)
async def test_what_means_harm_is_only_text(serve_hostile, text):
    datasette = serve_hostile(text)
    for page in PAGES:
        check_inert(await get(datasette, BASE + page))


@pytest.mark.threat("T15")
@pytest.mark.parametrize("text", PAYLOADS)
async def test_names_that_mean_harm_are_only_text(tmp_path, text):
    name = text.encode("utf-8", "replace").decode()  # SQLite keeps no half of a surrogate pair
    row = {
        "run": name, "env": name, "split": name, "prompt": name[:300], "stop_condition": name, "error_type": name,
        "ok": 0, "reward": 1.0, "agent": name, f"rewards.{name}.score": 1.0, "group": name,
    }  # fmt: skip
    datasette = Datasette([str(make_index(tmp_path / "run.sqlite", [row, {**row, "reward": 0.0}]))])
    for page in PAGES[:5]:
        check_inert(await get(datasette, BASE + page))


def check_inert(page):
    """Check that the part between our frame's marks has only elements and addresses of our own."""
    parser = Elements()
    parser.feed(page[page.index('<div class="reading"') : page.index("</main>")])
    for tag, attributes in parser.found:
        assert tag not in {"iframe", "object", "template", "style", "math", "base", "meta"}
        if tag == "img":
            assert attributes["src"].startswith("data:image/png;base64,")
        if tag == "script":
            assert set(attributes) == {"type", "src"}
            assert attributes["src"].startswith("/-/static-plugins/")
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "/").startswith(("/", "#"))
    # The value of a form's field is not seen, and has to stay what it is.
    seen = re.sub(r' value="[^"]*"', "", page)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", seen)


@pytest.mark.threat("T20")
@pytest.mark.parametrize("payload", ['"><script>x</script>', "{{7*7}}", "\u202e", "%00"])
async def test_filters_in_the_address_are_only_text(datasette, payload):
    for names in (("env", "start"), ("view", "message"), ("_sort",)):
        query = "&".join(f"{name}={payload}" for name in names)
        for page in PAGES[1:6]:
            response = await datasette.client.get(f"{BASE}{page}?{query}")
            if response.status_code == 200:
                check_inert(response.text)
            else:  # a page refuses what it does not take
                assert response.status_code == 400
                assert not re.search("<script>x|>49<|[\x00\u202e]", response.text)


async def test_the_menu_leads_to_the_overview(datasette):
    await get(datasette, BASE + "/")
    assert set(links(await get(datasette, "/"), "Rollouts")) == {f"{BASE}/"}


@pytest.mark.parametrize("path", ["/run", "/run/trajectories", "/run/step_summary"])
async def test_databases_and_tables_lead_to_the_overview(datasette, path):
    await get(datasette, BASE + "/")
    text = await get(datasette, path)
    assert f'href="{BASE}/"' in text.replace("&#x2F;", "/")


async def test_the_menu_hides_what_may_not_be_seen(serve):
    datasette = serve(metadata=denied("trajectories"))
    await get(datasette, BASE + "/", 403)
    assert not links(await get(datasette, "/"), "Rollouts")


async def test_the_jump_menu_of_datasette_1_has_the_overview(datasette):
    response = await datasette.client.get("/-/jump?q=rollouts")
    if response.status_code == 404:
        pytest.skip("Datasette 0.65 has no jump menu")
    assert f"{BASE}/" in [item["url"] for item in response.json()["matches"]]


async def test_several_indexes_are_told_apart(folder, tmp_path):
    other = make_index(tmp_path / "other.sqlite", [{"reward": 1.0}])
    datasette = Datasette([str(folder / "run.sqlite"), str(other)])
    for name in ("run", "other"):
        await get(datasette, f"/-/rltracer/{name}/")
    page = await get(datasette, "/")
    assert set(links(page, "Rollouts: other")) == {"/-/rltracer/other/"}


ENDLESS = "with recursive n(x) as (values (1) union all select x + 1 from n) select count(*) from n"


@pytest.mark.threat("T14")
async def test_a_query_that_takes_too_long_costs_only_its_list(serve, monkeypatch):
    monkeypatch.setattr(run_queries, "ERRORS", ENDLESS)
    monkeypatch.setattr(run_queries, "ranked_query", lambda *_, **__: (ENDLESS, {}))
    page = words(await get(serve(settings={"sql_time_limit_ms": 200}), BASE + "/run/1"))
    for title in ("Errors by type", "Hardest prompts over all steps"):
        assert f"{title} not shown: the query took longer than this server allows" in page
    assert not re.search("No trajectory of this run|No prompt of this run|There is only this", page)
    assert "Steps 1 step ·" in page


@pytest.mark.parametrize("path", ["/group/1", "/trajectory/1?success=1"])
async def test_neighbours_that_take_too_long_are_left_out(serve, monkeypatch, path):
    for module in (group_page, trajectory_page):
        monkeypatch.setattr(module, "neighbours", lambda selection, key: Query(ENDLESS))
    page = await get(serve(settings={"sql_time_limit_ms": 200}), BASE + path)
    assert not links(page, "next group")
