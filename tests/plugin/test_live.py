"""The small question whether an open page is out of date: who is answered, and when the answer differs."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from datasette.app import Datasette

from tests.indexing import index
from tests.layouts import append, append_torn
from tests.layouts.records import message, trace

from .conftest import TRACES, get, traces, write_run

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
    from rltracer_sqlite.index.gone import mark_gone
    from tests.indexing import finish_writing, open_for_writing

    connection = open_for_writing(folder / "run.sqlite")
    mark_gone(connection, 1, set())
    finish_writing(connection)


def another():
    return trace([message("user", "Pick one."), message("assistant", "wrong")], id="another")


def add_a_bad_line(folder):
    with (folder / "run" / TRACES).open("a") as file:
        file.write("{no record\n")


def add_a_line_without_its_end(folder):
    append_torn(folder / "run" / TRACES, another())


def add_what_cannot_be_read(folder):
    append(folder / "outside.jsonl", another())
    (folder / "run" / TRACES).with_name("more.jsonl").symlink_to(folder / "outside.jsonl")


def add_an_empty_file(folder):
    (folder / "run" / TRACES).with_name("more.jsonl").touch()


def exchange_rewards(folder):
    """Exchange the rewards of two prompts: every count, mean and spread of the step stays what it was."""
    first, *others, last = traces()[:3]
    first["rewards"], last["rewards"] = last["rewards"], first["rewards"]
    write_run(folder / "run", [first, *others, last, *traces()[3:]])


def add_a_step(folder):
    append(folder / "run/rollouts/step_2/train/all/traces.jsonl", another())


def set_another_rule(folder):
    index(folder / "run.sqlite", folder / "run", success=("reward", 0.4))


def give_another_name(folder):
    with closing(sqlite3.connect(folder / "run.sqlite")) as connection, connection:
        connection.execute("update runs set name = 'renamed'")


# What happens, and the pages that tell it: those of the step and of what is around it, or of the group as well.
CHANGES = {
    add_a_bad_line: ["", "run/1", "step/1/1", "prompt/1/2"],
    add_a_line_without_its_end: ["", "run/1", "step/1/1", "prompt/1/2"],
    add_what_cannot_be_read: ["", "run/1", "step/1/1", "prompt/1/2"],
    add_an_empty_file: ["", "run/1", "step/1/1", "prompt/1/2"],
    add_a_step: ["", "run/1", "step/1/1", "prompt/1/2"],
    exchange_rewards: ["", "run/1", "step/1/1", "group/1", "prompt/1/2"],
    set_another_rule: ["", "run/1", "step/1/1", "group/1", "prompt/1/2"],
    give_another_name: ["", "run/1", "step/1/1", "group/1", "prompt/1/2"],
}


async def shown(datasette, place):
    html = await get(datasette, f"/-/rltracer/run/{place}")
    return re.sub(r"data-(version|trajectories)=\S+", "", html)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_whatever_a_page_shows_is_told_where_it_changes(datasette, folder, change):
    pages = {place: await shown(datasette, place) for place in PLACES}
    states = {place: await state(datasette, place) for place in PLACES}
    change(folder)
    index(folder / "run.sqlite", folder / "run")
    told = [place for place in PLACES if await state(datasette, place) != states[place]]
    differ = [place for place in PLACES if await shown(datasette, place) != pages[place]]
    assert told == CHANGES[change]
    assert set(differ) <= set(told)


async def test_two_files_that_exchange_their_states_are_told(datasette, folder):
    away, steps = folder / "away", [folder / "run" / TRACES, folder / "run" / str(TRACES).replace("step_1", "step_2")]
    append(steps[1], another())
    index(folder / "run.sqlite", folder / "run")
    steps[0].rename(away)
    index(folder / "run.sqlite", folder / "run")
    before = await state(datasette, "run/1")
    steps[1].rename(folder / "other")
    away.rename(steps[0])
    index(folder / "run.sqlite", folder / "run")
    assert await state(datasette, "run/1") != before


@pytest.mark.parametrize("place", PLACES)
async def test_nothing_is_counted_again_before_something_is_written(folder, place):
    datasette = Datasette([str(folder / "run.sqlite")], settings={"num_sql_threads": 1})
    asked = []
    await datasette.databases["run"].execute_fn(lambda connection: connection.set_trace_callback(asked.append))
    before = await state(datasette, place)
    asked.clear()
    assert await state(datasette, place) == before
    assert [sql for sql in asked if not re.search("pragma|sqlite_master", sql, re.IGNORECASE)] == []
    give_another_name(folder)
    assert await state(datasette, place) != before


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
