"""A plain `datasette run.sqlite` explains its tables; what the user says about them wins."""

from __future__ import annotations

import re
import sqlite3

import pytest
from datasette import __version__
from datasette.app import Datasette

from datasette_rltracer.indexes import is_rollout_index
from rltracer_sqlite.metadata import datasette_metadata
from tests.indexing import made_before

from .conftest import get

pytestmark = pytest.mark.asyncio


def tables(**metadata):
    return {"databases": {"run": {"tables": metadata}}}


async def test_tables_and_columns_are_described(datasette):
    page = await get(datasette, "/run/trajectories")
    assert "One sampled, possibly multi-turn trajectory" in page
    assert "<dt>stop_condition</dt><dd>why it stopped, in the system&#39;s own words</dd>" in page
    assert "<dt>metric_num_turns</dt><dd>metrics.num_turns, as recorded</dd>" in page


@pytest.mark.parametrize(
    ("table", "facets"), [("trajectories", ["success", "stop_condition"]), ("prompt_groups", ["zero_variance", "env"])]
)
async def test_tables_have_facets(datasette, table, facets):
    page = await get(datasette, f"/run/{table}")
    for facet in facets:
        assert f'data-column="{facet}"' in page
        assert f"facet-info facet-run-{table.replace('_', '-')}-{facet}" in page or f"_facet={facet}" not in page
        assert f"{facet}=" in page


async def test_rows_are_labelled_and_ordered(datasette):
    database = datasette.get_database("run")
    await datasette.invoke_startup()
    assert await database.label_column_for_table("trajectories") == "uid"
    assert await database.label_column_for_table("prompts") == "preview"
    assert "run_id" in await get(datasette, "/run/steps")


async def test_the_list_of_migrations_is_hidden(datasette):
    await datasette.invoke_startup()
    assert "_sqlite_migrations" in await datasette.get_database("run").hidden_table_names()


async def test_the_users_metadata_wins(serve):
    users = {"description": "My own words", "columns": {"uid": "My id"}, "facets": ["agent"], "label_column": "env"}
    datasette = serve(metadata=tables(trajectories=users))
    page = await get(datasette, "/run/trajectories")
    assert "My own words" in page
    assert "One sampled, possibly" not in page
    assert "<dt>uid</dt><dd>My id</dd>" in page
    assert "<dt>env</dt><dd>the environment</dd>" in page
    assert "agent=" in page
    assert "stop_condition=" not in page
    assert await datasette.get_database("run").label_column_for_table("trajectories") == "env"


@pytest.mark.parametrize("users", [{"sort": "name"}, {"sort_desc": "id"}])
async def test_a_users_order_takes_the_place_of_ours(serve, users):
    await get(serve(metadata=tables(runs=users)), "/run/runs")


@pytest.mark.parametrize("metadata", [{}, {"databases": {}}, {"databases": {"other": {"tables": {}}}}])
async def test_any_metadata_may_be_given(serve, metadata):
    assert "One training or evaluation run" in await get(serve(metadata=metadata), "/run/runs")


async def test_the_metadata_of_the_library_works_as_a_metadata_yml(serve):
    page = await get(serve(metadata=datasette_metadata("run")), "/run/prompt_groups")
    assert "the difficulty" in page
    assert "pass_bucket=" in page


@pytest.mark.skipif(__version__.startswith("1."), reason="Datasette 1.0 has no permissions in metadata")
async def test_permissions_set_for_all_databases_stay_in_force(serve):
    datasette = serve(metadata={"tables": {"trajectories": {"allow": False}}})
    await get(datasette, "/run/trajectories", 403)
    await get(datasette, "/-/rltracer/run/trajectory/1", 403)


@pytest.mark.parametrize("database", [{}, {"plugins": {"other": {"b": 2}}}])
async def test_the_configuration_of_other_plugins_stays_in_force(serve, database):
    datasette = serve(metadata={"plugins": {"other": {"a": 1}}, "databases": {"run": database}})
    await datasette.invoke_startup()
    assert datasette.plugin_config("other", database="run") == ({"b": 2} if database else {"a": 1})
    assert datasette.plugin_config("other") == {"a": 1}


@pytest.mark.parametrize("table", ["trajectories", "prompt_pass_rates"])
async def test_tables_and_views_have_a_style_of_their_own(serve, table):
    page = await get(serve(settings={"base_url": "/prefix/"}), f"/run/{table}")
    assert 'href="/prefix/-/static-plugins/datasette-rltracer/tables.css?v=' in page
    assert 'type="module" src="/prefix/-/static-plugins/datasette-rltracer/tables.js?v=' in page


@pytest.mark.parametrize("path", ["mine", "trajectories/1", "runs/1", "?sql=select+1"])
async def test_other_pages_of_an_index_have_not(folder, path):
    with sqlite3.connect(folder / "run.sqlite") as connection:
        connection.execute("create table mine (preview text)")
    connection.close()
    page = await get(Datasette([str(folder / "run.sqlite")]), f"/run/{path}", follow_redirects=True)
    assert "tables.css" not in page
    assert "tables.js" not in page


async def test_what_decides_stands_first(datasette):
    page = await get(datasette, "/run/trajectories")
    columns = re.findall(r'<th[^>]* data-column="(\w+)"', page)
    assert columns[:6] == ["id", "run_id", "step", "split", "env", "preview"]
    assert columns[6:12] == ["success", "reward", "turns", "completion_tokens", "stop_condition", "error_type"]


async def test_an_index_from_before_the_names_of_tools_is_shown_as_it_is(folder):
    made_before("m002_tools", folder / "run.sqlite")
    old = Datasette([str(folder / "run.sqlite")])
    pages = {
        "run/1": "Steps",
        "step/1/1": "group/1",
        "group/1": "reward",
        "trajectory/1": "<dt>tools</dt><dd>shell</dd>",
    }
    for path, said in pages.items():
        assert said in await get(old, f"/-/rltracer/run/{path}")
    assert "col-tool_calls" in await get(old, "/run/trajectories")


async def test_other_databases_are_left_alone(tmp_path):
    connection = sqlite3.connect(tmp_path / "other.sqlite")
    connection.execute("create table trajectories (id integer primary key, uid text, preview text)")
    connection.close()
    datasette = Datasette([str(tmp_path / "other.sqlite")])
    page = await get(datasette, "/other/trajectories")
    assert "possibly multi-turn" not in page
    assert "tables.css" not in page
    assert not await is_rollout_index(datasette, "other")


async def test_a_damaged_file_does_not_stop_datasette(tmp_path, folder):
    (tmp_path / "bad.sqlite").write_bytes(b"SQLite format 3\0" + bytes(100))
    datasette = Datasette([str(folder / "run.sqlite")])
    damaged = datasette.databases["run"].__class__(datasette, path=str(tmp_path / "bad.sqlite"))
    datasette.add_database(damaged, name="bad")
    assert not await is_rollout_index(datasette, "bad")


async def test_an_index_that_is_attached_later_is_described_when_it_is_met(folder):
    datasette = Datasette([])
    await datasette.invoke_startup()
    attached = datasette.databases["_memory"].__class__(datasette, path=str(folder / "run.sqlite"))
    datasette.add_database(attached, name="late")
    await get(datasette, "/-/rltracer/late/trajectory/3")
    assert "possibly multi-turn" in await get(datasette, "/late/trajectories")
