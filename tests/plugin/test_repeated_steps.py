"""Steps all of whose records are counted in another step: pages say that they were read, and why they are empty."""

from __future__ import annotations

import pytest
from datasette.app import Datasette

from tests.indexing import index
from tests.layouts import append, message, trace

from .conftest import get
from .html import table_rows, words

pytestmark = pytest.mark.asyncio
WHY = "2 records repeat those of step 2, where they are counted"


@pytest.fixture
def run(tmp_path):
    for step in (1, 2):
        records = [trace([message("user", "6 * 7?"), message("assistant", "42")], id=uid) for uid in "ab"]
        append(tmp_path / f"run/rollouts/step_{step}/train/all/traces.jsonl", *records)
    # What is begun is read as far as it is there.
    path = tmp_path / "run/rollouts/step_3/train/all/traces.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"id": ')
    return tmp_path / "run"


@pytest.fixture
def datasette(run, tmp_path):
    index(tmp_path / "index.sqlite", run)
    return Datasette([str(tmp_path / "index.sqlite")])


async def test_the_page_of_a_run_says_why_beside_each_step(datasette):
    page = await get(datasette, "/-/rltracer/index/run/1")
    assert [row[:3] for row in table_rows(page, "steps")] == [
        ["3", "train", "no trajectory: it ends in the middle of its only line"],
        ["", "1 of 1 file has an unfinished last line"],
        ["2", "train", "2"],
        ["1", "train", f"no trajectory: {WHY}"],
        ["", "2 problems"],
    ]
    assert "steps read" not in words(page)
    assert "not read yet" not in words(page)


async def test_the_overview_counts_them_as_read(datasette):
    said = words(await get(datasette, "/-/rltracer/index/"))
    assert "steps read" not in said
    assert "1 of 3 files has an unfinished last line" in said


async def test_the_page_of_a_step_says_why(datasette):
    said = words(await get(datasette, "/-/rltracer/index/step/1/1"))
    assert f"No trajectory of this step was found. rollouts/step_1/train/all/traces.jsonl: {WHY}." in said
    assert "has not been read yet" not in said
