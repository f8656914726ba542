"""Where there are pages of the runs below a folder, who may see them, and what no address of theirs reaches."""

from __future__ import annotations

import re

import pytest
from datasette.app import Datasette
from datasette.utils import tilde_encode
from datasette.utils.asgi import NotFound

from datasette_rltracer.browse_config import browsed_database
from datasette_rltracer.browse_folder import browser_of
from rltracer_sqlite.cli.serve import browse_config, prepare_index
from tests.indexing import value
from tests.small_runs import write_step

from .conftest import BROWSE, get
from .html import links, words

pytestmark = pytest.mark.asyncio


@pytest.mark.threat("T21")
@pytest.mark.parametrize(
    "path",
    ["..", "../outside", "/etc", "team/../../outside", "link", "nothing", "team/first/../../..", "\0", "team\0/first"],
)
@pytest.mark.parametrize("step", ["", "/1", "/all"])
async def test_no_address_leads_out_of_the_folder(browse, runs, tmp_path, path, step):
    write_step(tmp_path / "outside", 1, "secret")
    (runs / "link").symlink_to(tmp_path / "outside")
    datasette = browse()
    response = await datasette.client.get(f"{BROWSE}/{tilde_encode(path)}{step}")
    assert response.status_code in (400, 404)
    assert "secret" not in response.text
    assert value(tmp_path / "index.sqlite", "select count(*) from runs") == 0


@pytest.mark.parametrize("step", ["8", "x", "-1", "none", "9" * 20, "7~2F..", "all/1"])
async def test_a_step_that_is_not_there_is_not_found(browse, step):
    assert (await browse().client.get(f"{BROWSE}/second/{step}")).status_code == 404


async def test_a_run_that_has_become_a_link_is_not_read(browse, runs, tmp_path):
    datasette = browse()
    await get(datasette, BROWSE)
    write_step(tmp_path / "outside", 7, "secret")
    (runs / "second").rename(tmp_path / "moved")
    (runs / "second").symlink_to(tmp_path / "outside")
    await get(datasette, f"{BROWSE}/second/7", 404)


async def test_without_the_configuration_there_are_no_such_pages(runs, tmp_path):
    datasette = Datasette([str(prepare_index(runs, tmp_path / "index.sqlite"))])
    for path in ("/-/rltracer", BROWSE, f"{BROWSE}/second", f"{BROWSE}/second/7"):
        await get(datasette, path, 404)


async def test_a_database_in_memory_has_no_such_pages(runs, tmp_path):
    config = browse_config(runs.resolve(), tmp_path / "_memory.sqlite")
    datasette = Datasette([], memory=True, metadata=config)
    assert browsed_database(datasette) is None
    with pytest.raises(NotFound, match="No runs are offered here"):
        browser_of(datasette)
    assert "Runs to read" not in (await datasette.client.get("/")).text


async def test_another_database_has_no_such_pages(browse, runs, tmp_path):
    datasette = browse()
    other = prepare_index(runs, tmp_path / "other.sqlite")
    datasette.add_database(
        type(datasette.databases["index"])(datasette, path=str(other), is_mutable=True), name="other"
    )
    await get(datasette, "/-/rltracer/other/browse", 404)


async def test_the_pages_need_permission(browse, tmp_path):
    databases = {"index": {"tables": {"trajectories": {"allow": {"id": "root"}}}}}
    datasette = browse(metadata={"databases": databases})
    for path in (BROWSE, f"{BROWSE}/second", f"{BROWSE}/second/7"):
        await get(datasette, path, 403)
    assert value(tmp_path / "index.sqlite", "select count(*) from runs") == 0


async def test_links_stay_below_the_base_url(browse):
    datasette = browse(settings={"base_url": "/prefix/"})
    for path in (BROWSE, f"{BROWSE}/second"):
        found = re.findall(r'(?:href|src|action)="(/[^"]*)', await get(datasette, path))
        assert found
        assert all(address.startswith("/prefix/") for address in found)
    page = await get(datasette, f"{BROWSE}/second/7", 202)
    assert 'content="1;url=/prefix/-/rltracer/' in page
    assert browser_of(datasette).reader.wait(60)


async def test_a_step_that_a_run_has_not_is_answered_with_those_it_has(browse):
    page = await get(browse(), f"{BROWSE}/team~2Ffirst/7", 404)
    assert "This run has no such step." in words(page)
    assert links(page, "step 2, the last") == [f"{BROWSE}/team~2Ffirst/2"]
    assert links(page, "all steps of team/first") == [f"{BROWSE}/team~2Ffirst"]
    assert links(page, "all runs of the folder") == [BROWSE]
