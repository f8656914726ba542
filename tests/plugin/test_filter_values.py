"""A name in an address that no listed row has: the page says which there are, with links to them."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.export_runs import rollout, write_steps
from tests.indexing import index
from tests.searching import text

from .conftest import get
from .html import words

pytestmark = pytest.mark.asyncio
OWN = "/-/rltracer/run/"
MISSING = re.compile(r'<p class="notice" role="alert">(\w+ \w+ has no .*?)</p>', re.DOTALL)


@pytest.fixture
def folder(tmp_path):
    math, code = {"env_name": "math"}, {"env_name": "code<b>"}
    write_steps(tmp_path / "run", {1: [rollout("a", info=math), rollout("b", "Hm?", info=code)], 2: [rollout("c")]})
    write_steps(tmp_path / "run", {1: [rollout("d", info=math)]}, "eval")
    index(tmp_path / "run.sqlite", tmp_path / "run")
    return tmp_path


def said(page: str) -> list[str]:
    return [unescape(words(one)) for one in MISSING.findall(page)]


SPLITS = "has no split trian; it has eval, train."
ENVS = "has no env maths; it has code<b>, math."
ENVS_OR_NONE = "has no env maths; it has code<b>, math, not recorded."
PAGES = {
    "step/1/1?split=trian": [f"This step {SPLITS}"],
    "step/1/1?env=maths&split=trian": [f"This step {ENVS}", f"This step {SPLITS}"],
    "step/1/2?split=eval": ["This step has no split eval; it has train."],
    "step/1/1?split=eval&env=code%3Cb%3E": [],  # both are there, and no group has both
    "step/1/1?split=eval": [],
    "group/1?split=trian": [f"This index {SPLITS}"],
    "group/1?run_id=7&env=maths": ["This index has no run 7; it has run.", f"This index {ENVS_OR_NONE}"],
    "group/1?split=not+recorded": ["This index has no split not recorded; it has eval, train."],
    "group/1?stop_condition=x": ["This group has no stop_condition x; it has agent_completed."],
    "group/1?error_type=x": ["This group has no error_type x."],
    "group/1?success=0": [],
    "trajectory/1?split=trian&stop_condition=x": [
        f"This index {SPLITS}",
        "This group has no stop_condition x; it has agent_completed.",
    ],
    "run/1?split=trian": [f"This run {SPLITS}"],
    "run/1/charts?env=maths&split=eval": [f"This run {ENVS_OR_NONE}"],
    "run/1/charts?split=not+recorded": ["This run has no split not recorded; it has eval, train."],
    "run/1/charts?env=math": [],
}


@pytest.mark.parametrize("page", PAGES)
async def test_a_name_that_is_not_there_is_answered_with_those_that_are(serve, page):
    assert said(await get(serve(), OWN + page)) == PAGES[page]


@pytest.mark.parametrize(("settings", "below"), [({}, ""), ({"base_url": "/below/"}, "/below")])
async def test_the_links_keep_the_other_filters_and_lead_to_the_first_rows(serve, settings, below):
    page = await get(serve(settings=settings), f"{OWN}step/1/1?split=trian&zero_variance=1&start=5")
    links = [unescape(one) for one in re.findall(r'href="([^"]+)"', MISSING.search(page)[1])]
    assert links == [f"{below}{OWN}step/1/1?split={split}&zero_variance=1" for split in ("eval", "train")]


async def test_an_export_of_nothing_names_what_there_is(serve):
    page = await get(serve(), f"{OWN}export?_table=trajectories&_preview=sft&env=maths", 400)
    assert said(page) == [f"This index {ENVS_OR_NONE}"]
    page = await get(serve(), f"{OWN}export?_table=runs", 404)
    assert "the table prompt_groups" in page


async def test_a_search_that_finds_nothing_for_a_filter_says_so(folder, serve):
    text(folder / "run.sqlite", folder)
    page = await get(serve(), f"{OWN}search?q=Hm&split=trian&error_type=x")
    assert said(page) == [f"This index {SPLITS}", "This index has no error_type x."]
    assert said(await get(serve(), f"{OWN}search?q=nowhere&split=eval")) == []


async def test_what_is_asked_is_text(serve):
    page = await get(serve(), f"{OWN}step/1/1?split=%3Cimg%3E%E2%80%AE{'x' * 500}")
    [told] = MISSING.findall(page)
    assert "<img" not in told
    assert len(told) < 500
