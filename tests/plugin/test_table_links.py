"""Cells of an index's tables lead somewhere; those of other databases, and of arbitrary SQL, never do."""

from __future__ import annotations

import html
import re
import sqlite3
from contextlib import closing

import pytest
from datasette.app import Datasette

from .conftest import get

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/run/trajectory"


def cell(page, column):
    return re.search(rf'<td class="col-{column}[^"]*">(.*?)</td>', page, re.DOTALL)[1].strip()


def with_change(folder, sql):
    """Return a Datasette for the index in a folder, after a change of its rows."""
    with closing(sqlite3.connect(folder / "run.sqlite")) as connection, connection:
        connection.execute(sql)
    return Datasette([str(folder / "run.sqlite")])


@pytest.mark.parametrize("column", ["uid", "preview"])
@pytest.mark.parametrize("path", ["/run/trajectories?_size=1", "/run/trajectories/1"])
async def test_a_trajectory_leads_to_its_page(datasette, column, path):
    assert cell(await get(datasette, path), column).startswith(f'<a href="{PAGE}/1">')


OURS = "/-/rltracer/run"


@pytest.mark.parametrize(
    ("path", "column", "address"),
    [
        ("runs", "name", "/run/1"),
        ("steps", "run_id", "/run/1"),
        ("steps", "step", "/step/1/1?split=train"),
        ("shards", "run_id", "/run/1"),
        ("prompt_groups", "run_id", "/run/1"),
        ("prompt_groups", "step", "/step/1/1"),
        ("prompt_groups", "prompt_id", "/group/1"),
        ("prompt_groups", "group_id", "/group/1"),
        ("prompt_groups/1", "id", "/group/1"),
        ("trajectories", "run_id", "/run/1"),
        ("trajectories", "step", "/step/1/1"),
        ("trajectories", "prompt_group_id", "/group/1"),
        ("trajectories/1", "id", "/trajectory/1"),
        ("step_summary", "run", "/run/1"),
        ("step_summary", "step", "/step/1/1"),
        ("tool_use", "step", "/step/1/1"),
        ("advantages", "trajectory_id", "/trajectory/1"),
        ("advantages", "prompt_group_id", "/group/1"),
        ("prompt_pass_rates", "run_id", "/run/1"),
        ("prompt_pass_rates", "prompt_id", "/prompt/1/1?split=train&amp;env=counting"),
        ("prompt_windows", "preview", "/prompt/1/1?split=train&amp;env=counting"),
    ],
)
async def test_a_cell_that_names_something_leads_to_its_page(datasette, path, column, address):
    found = cell(await get(datasette, f"/run/{path}{'' if '/' in path else '?_size=1'}"), column)
    assert found.removeprefix("<strong>").startswith(f'<a href="{OURS}{address}">')


async def test_a_cell_without_a_value_has_no_link(folder):
    changed = with_change(folder, "update trajectories set step = null, prompt_group_id = null")
    page = await get(changed, "/run/trajectories?_size=1")
    assert OURS not in cell(page, "step") + cell(page, "prompt_group_id")


async def test_the_label_of_a_foreign_key_stays(datasette):
    assert cell(await get(datasette, "/run/trajectories?_size=1"), "run_id").endswith(">run</a>")


@pytest.mark.parametrize(
    ("table", "column", "rows"),
    [
        ("prompt_groups", "trajectories", 3),
        ("steps", "trajectories", 4),
        ("tool_use", "trajectories", 1),
        ("prompts", "preview", 1),
    ],
)
async def test_counts_lead_to_the_rows_that_they_count(datasette, table, column, rows):
    page = await get(datasette, f"/run/{table}?_sort_desc={column if table in ('steps', 'tool_use') else 'id'}")
    address = html.unescape(re.search(r'href="([^"]+)"', cell(page, column))[1])
    found = await datasette.client.get(address.replace("?", ".json?") + "&_shape=array")
    assert len(found.json()) == rows


async def test_a_missing_step_is_asked_for_as_null(folder):
    page = await get(with_change(folder, "update steps set step = null, split = null"), "/run/steps")
    assert "step__isnull=1&amp;split__isnull=1" in cell(page, "trajectories")


async def test_a_column_that_is_left_out_costs_only_the_link(datasette):
    assert "<a" not in cell(await get(datasette, "/run/steps?_nocol=run_id"), "trajectories")


async def test_pages_of_arbitrary_sql_have_no_links(datasette):
    page = await get(datasette, "/run?sql=select+id,+uid,+preview+from+trajectories", follow_redirects=True)
    assert "counted" in page
    assert PAGE not in page


async def test_json_and_csv_hold_the_plain_values(datasette):
    rows = (await datasette.client.get("/run/trajectories.json?_shape=array")).json()
    assert [row["uid"] for row in rows] == ["counted", "forked", "passed", "failed"]
    assert PAGE not in await get(datasette, "/run/trajectories.csv")


async def test_a_hostile_cell_is_inert(folder):
    connection = sqlite3.connect(folder / "run.sqlite")
    connection.execute("update trajectories set uid = ? || id, preview = ?", ('"><script>x</script>', "\u202ereversed"))
    connection.commit()
    connection.close()
    page = await get(Datasette([str(folder / "run.sqlite")]), "/run/trajectories?_size=1")
    assert "<script>x" not in page
    assert "RIGHT-TO-LEFT OVERRIDE" in cell(page, "preview")


async def test_the_mapping_of_a_run_is_folded_and_inert(folder):
    changed = with_change(folder, "update runs set mapping = '# <b>bold' || char(10) || 'name = \"mine\"'")
    text = "<pre># &lt;b&gt;bold\nname = &#34;mine&#34;</pre>"
    for path in ("/run/runs", "/run/runs/1"):
        assert cell(await get(changed, path), "mapping") == f"<details><summary>2 lines</summary>{text}</details>"
    assert (await changed.client.get("/run/runs.json?_shape=array")).json()[0]["mapping"] == '# <b>bold\nname = "mine"'


async def test_links_work_below_a_base_url(serve):
    page = await get(serve(settings={"base_url": "/prefix/"}), "/run/trajectories?_size=1")
    assert cell(page, "uid").startswith(f'<a href="/prefix{PAGE}/1">')
