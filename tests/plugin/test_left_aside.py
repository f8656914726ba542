"""Files that are left aside on pages: the run's page lists them, and no page says that every file was read."""

from __future__ import annotations

import json

import pytest
from datasette.app import Datasette

from tests.indexing import index
from tests.layouts import append
from tests.left_aside import KINDS, REASONS
from tests.watching import at_step, record

from .conftest import get
from .html import words

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/run-index/run/1"


# What is not of step 1.
STEPS = {
    "metrics, by name": 8, "inputs, by content": "none", "beside a table": 3, "packed otherwise": 3,
    "another kind": 5, "another system's": 5,
}  # fmt: skip


def indexed(folder, kind):
    files = KINDS[kind](folder / "run")
    index(folder / "run-index.sqlite", folder / "run")
    return Datasette([str(folder / "run-index.sqlite")]), files


@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_the_page_of_a_run_lists_them_with_the_reason(tmp_path, kind):
    datasette, files = indexed(tmp_path, kind)
    html = await get(datasette, PAGE)
    page, count = words(html), "1 file was" if len(files) == 1 else f"{len(files)} files were"
    assert f"Every line of every file was read, except that {count} left aside." in page
    assert f", {len(files)} of them left aside ·" in page
    for file in files:
        assert page.count(f"{file} – left aside: {REASONS[kind]}") == 1
    assert "read completely" in page
    listed = (await datasette.client.get("/run-index/shards.json?state=aside&_shape=array")).json()
    assert [row["file"] for row in listed] == files
    assert (await datasette.client.get("/run-index/run_problems.json?_shape=array")).json() == []


@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_the_page_of_a_step_does_not_wait_for_them(tmp_path, kind):
    datasette, _ = indexed(tmp_path, kind)
    step = STEPS.get(kind, 1)
    page = words(await get(datasette, PAGE.replace("run/1", f"step/1/{step}")))
    assert "left aside" not in page


async def test_beside_what_else_is_not_read_they_are_counted_last(tmp_path):
    KINDS["token shards"](tmp_path / "run")
    for number in range(30):
        (tmp_path / f"run/rollouts/step_1/rank_{number + 1}.bin").write_bytes(b"\x93")
    append(tmp_path / "run" / at_step(3), record("t3"))
    with (tmp_path / "run" / at_step(3)).open("a") as file:
        file.write("{")
    index(tmp_path / "run-index.sqlite", tmp_path / "run")
    html = await get(Datasette([str(tmp_path / "run-index.sqlite")]), PAGE)
    page = words(html)
    assert (
        "No problem in what was read; 1 of 34 files has an unfinished last line, of step 3; 32 files were left aside."
        in page
    )
    assert "20 of 33 files shown" in page
    assert page.index("which is read when it is complete") < page.index(REASONS["token shards"])
    assert page.count(REASONS["token shards"]) == 19


async def test_an_open_page_of_the_run_is_out_of_date_when_one_comes_and_that_of_a_step_is_not(tmp_path):
    datasette, _ = indexed(tmp_path, "token shards")

    async def versions():
        answers = [await datasette.client.get(f"/-/rltracer/run-index/live/{place}") for place in ("run/1", "step/1/1")]
        return [json.loads(answer.text)["version"] for answer in answers]

    before = await versions()
    (tmp_path / "run/rollouts/step_1/rank_9.bin").write_bytes(b"\x93")
    index(tmp_path / "run-index.sqlite", tmp_path / "run")
    run, step = await versions()
    assert (run == before[0], step == before[1]) == (False, True)
