"""What has no environment, or no split, can be chosen in every form that chooses by them, and in addresses."""

from __future__ import annotations

import re

import pytest
from datasette.app import Datasette

from tests.export_runs import rollout, write_steps
from tests.index_factory import make_index
from tests.indexing import index
from tests.searching import text

from .conftest import get
from .html import links, words

pytestmark = pytest.mark.asyncio
OWN = "/-/rltracer/x/"
NONE = "not+recorded"


@pytest.fixture
def datasette(tmp_path):
    rows = [{"prompt": f"p{number}", "reward": 1.0, "turns": 1} for number in range(3)]
    rows += [{"prompt": name, "env": None, "split": "eval", "reward": 0.0, "turns": 1} for name in ("q0", "p0")]
    rows += [{"prompt": "p0", "env": None, "split": None, "reward": 0.0, "turns": 1}]
    return Datasette([str(make_index(tmp_path / "x.sqlite", rows))])


def options(page: str, name: str) -> list[tuple[str, bool]]:
    """Return what a form offers for a field, and whether it is chosen."""
    found = re.search(rf'<select name="{name}"[^>]*>(.*?)</select>', page, re.DOTALL)
    assert found, name
    return [(words(said), "selected" in tag) for tag, said in re.findall(r"<option([^>]*)>(.*?)</option>", found[1])]


@pytest.mark.parametrize("page", ["run/1", "run/1/charts", "step/1/1", "export?_table=trajectories"])
async def test_every_form_offers_it_and_keeps_the_choice(datasette, page):
    mark = "&" if "?" in page else "?"
    offered = [name for name, _ in options(await get(datasette, OWN + page), "env")]
    assert offered == ["all", "math", "not recorded"]
    chosen = await get(datasette, f"{OWN}{page}{mark}env={NONE}")
    assert [name for name, is_chosen in options(chosen, "env") if is_chosen] == ["not recorded"]
    assert 'type="hidden" name="env' not in chosen


@pytest.mark.parametrize(
    ("query", "count"), [("", 6), (f"env={NONE}", 3), (f"split={NONE}", 1), (f"env={NONE}&split=eval", 2)]
)
async def test_pages_and_charts_are_of_what_is_chosen(datasette, query, count):
    chart = (await datasette.client.get(f"{OWN}run/1/charts/length.json?{query}")).json()
    assert sum(row["trajectories"] for row in chart["rows"]) == count
    link = chart["links"]
    fixed = "&".join(f"{name}={value}" for name, value in link["fixed"])
    of_split = "&split__isnull=1" if "split=not" in query else "&split=eval" if "split" in query else ""
    rows = (await datasette.client.get(f"{link['table']}.json?{fixed}{of_split}&_shape=array")).json()
    assert len(rows) == count
    page = await get(datasette, f"{OWN}step/1/1?{query}")
    assert page.count("<tr data-row>") == count


async def test_a_prompt_is_narrowed_to_it(datasette):
    page = await get(datasette, f"{OWN}prompt/1/1")
    ways = {"train · math": "?split=train&env=math", "no split · no env": f"?split={NONE}&env={NONE}"}
    assert {name: links(page, name)[0].partition("prompt/1/1")[2] for name in ways} == ways
    page = await get(datasette, f"{OWN}prompt/1/1?split={NONE}&env={NONE}")
    assert "Prompt 1 pass rate 0.000 0 of 1 " in words(page)
    assert links(page, "as a table")[0].endswith("?run_id=1&prompt_id=1&split__isnull=1&env__isnull=1&_sort=step")


async def test_search_and_export_take_it(tmp_path):
    records = [rollout("a", info={"env_name": "math"}), rollout("b"), rollout("c")]
    write_steps(tmp_path / "run", {1: records})
    index(tmp_path / "x.sqlite", tmp_path / "run")
    text(tmp_path / "x.sqlite", tmp_path)
    datasette = Datasette([str(tmp_path / "x.sqlite")])
    assert (await get(datasette, f"{OWN}search?q=brief&env={NONE}")).count("<li data-row>") == 2
    page = await get(datasette, f"{OWN}search?q=brief&split={NONE}")
    assert [name for name, is_chosen in options(page, "split") if is_chosen] == ["not recorded"]
    response = await datasette.client.get(f"/x/trajectories.sft?env={NONE}&_acceptance=any")
    assert (response.status_code, len(response.content.splitlines())) == (200, 2)
