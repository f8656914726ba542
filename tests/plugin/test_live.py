"""The small question whether an open page is out of date: who is answered, and when the answer differs."""

from __future__ import annotations

import re

import pytest
from datasette.app import Datasette

from tests.indexing import index
from tests.layouts import append
from tests.layouts.records import message, trace

from .conftest import TRACES, get

pytestmark = pytest.mark.asyncio
PLACES = {"": "live", "run/1": "live/run/1", "step/1/1": "live/step/1/1", "group/1": "live/group/1"}
PLACES["prompt/1/2"] = "live/prompt/1/2"  # of all trajectories but the first


async def state(datasette, place):
    response = await datasette.client.get(f"/-/rltracer/run/{PLACES[place]}")
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    return response.json()


@pytest.mark.parametrize("place", PLACES)
async def test_the_page_has_the_state_that_is_answered_until_something_changes(datasette, folder, place):
    html = await get(datasette, f"/-/rltracer/run/{place}")
    before = await state(datasette, place)
    assert re.search(r'data-live="([^"]*)"', html)[1] == f"/-/rltracer/run/{PLACES[place]}"
    assert re.search(r'data-version="([^"]*)"', html)[1] == before["version"]
    said = [message("user", "Pick one."), message("assistant", "right")]
    append(folder / "run" / TRACES, trace(said, id="new"))
    first = datasette.databases["run"]
    group = (await first.execute("select prompt_group_id from trajectories where id = 1")).first()[0]
    index(folder / "run.sqlite", folder / "run")
    after = await state(datasette, place)
    assert after["trajectories"] == before["trajectories"] + (place != f"group/{group}")
    assert (after == before) is (place == f"group/{group}")


@pytest.mark.parametrize("place", PLACES)
async def test_a_file_that_has_gone_is_a_change_of_its_run_its_step_and_its_group(datasette, folder, place):
    before = await state(datasette, place)
    (folder / "run" / TRACES).rename(folder / "away")
    index_gone(folder)
    assert await state(datasette, place) != before


def index_gone(folder):
    from rltracer_sqlite.index.plan import mark_gone
    from tests.indexing import finish_writing, open_for_writing

    connection = open_for_writing(folder / "run.sqlite")
    mark_gone(connection, 1, set())
    finish_writing(connection)


@pytest.mark.parametrize("place", PLACES)
async def test_who_may_not_see_the_page_is_not_answered(folder, place):
    hidden = {"databases": {"run": {"tables": {"trajectories": {"allow": False}}}}}
    for options in ({"metadata": hidden}, {"config": hidden}):
        try:
            datasette = Datasette([str(folder / "run.sqlite")], **options)
        except TypeError:
            continue
        await get(datasette, f"/-/rltracer/run/{PLACES[place]}", 403)


@pytest.mark.parametrize("path", ["live/run/x", "live/step/1", "live/group/x", "live/step/1/1.5", "live/prompt/1"])
async def test_other_addresses_are_none(datasette, path):
    await get(datasette, f"/-/rltracer/run/{path}", 404)


@pytest.mark.parametrize(
    "path", ["live/run/99", "live/step/1/none", "live/step/99/-3", "live/group/" + "9" * 19, "live/prompt/9/1"]
)
async def test_what_is_not_there_has_no_trajectories(datasette, path):
    response = await datasette.client.get(f"/-/rltracer/run/{path}")
    assert response.json()["trajectories"] == 0
