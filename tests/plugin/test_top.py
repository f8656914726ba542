"""The line at the top of Datasette's own pages that leads to an index's overview, on whichever line is installed."""

from __future__ import annotations

import json
import re

import pytest

from datasette_rltracer.compat import HAS_TOP_HOOKS

from .conftest import BROWSE, get
from .html import links

pytestmark = pytest.mark.asyncio


async def top(datasette, path, **options):
    """Return the line, from the page or from the script that puts it there."""
    page = await get(datasette, path, **options)
    if HAS_TOP_HOOKS:
        return "".join(re.findall(r'<p class="rltracer-top".*?</p>', page))
    return "".join(json.loads(line) for line in re.findall(r'insertAdjacentHTML\("afterend", (".*?")\);', page))


@pytest.mark.parametrize("path", ["/", "/run"])
async def test_datasettes_own_pages_lead_to_the_overview(datasette, path):
    assert links(await top(datasette, path), "Rollouts") == ["/-/rltracer/run/"]
    assert not await top(datasette, "/run/trajectories")


@pytest.mark.parametrize("path", ["/", "/run"])
async def test_who_may_not_see_trajectories_is_led_nowhere(serve, path):
    databases = {"run": {"tables": {"trajectories": {"allow": {"id": "root"}}}}}
    assert not await top(serve(metadata={"databases": databases}), path)


async def test_a_folder_of_runs_is_led_to_first(browse):
    line = await top(browse(), "/")
    assert re.findall(r'href="([^"]+)"', line) == [BROWSE, "/-/rltracer/index/"]


async def test_a_database_that_is_no_index_has_no_such_line(datasette):
    datasette.add_memory_database("other")
    assert not await top(datasette, "/other")


async def test_a_hostile_name_of_a_database_stays_text(serve):
    datasette = serve()
    name = "</script><b>x"
    datasette.add_database(datasette.databases["run"], name=name)
    for path in ("/", datasette.urls.database(name)):
        page = await get(datasette, str(path))
        assert "<b>x" not in page


async def test_what_sqlite_keeps_for_itself_is_no_table_to_look_at(datasette):
    page = (await datasette.client.get("/run.json")).json()
    assert {table["name"]: table["hidden"] for table in page["tables"]}["sqlite_sequence"] is True
