"""The record of a trajectory: decoded, as it stands in its file, and why one cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from datasette.app import Datasette

from datasette_rltracer.records import explained
from tests.indexing import index, value

from .conftest import TRACES, get, read

pytestmark = pytest.mark.asyncio
BASE = "/-/rltracer/run/trajectory"


async def test_the_decoded_trajectory_as_json(datasette):
    found = json.loads(await get(datasette, f"{BASE}/2.json?branch=1"))
    assert (found["ok"], found["id"], found["uid"], found["run"], found["branch"]) == (True, 2, "forked", "run", 1)
    assert [said["content"] for said in found["messages"]] == ["Pick one.", "left"]
    assert found["branches"] == [{"branch": n, "messages": 2, "trained": True} for n in (1, 2)]
    assert found["metadata"]["rewards"] == {"right": {"score": 0.5, "weight": 1.0}}


async def test_the_record_is_sent_as_it_stands_in_its_file(datasette, folder):
    response = await datasette.client.get(f"{BASE}/3/record")
    lines = (folder / "run" / TRACES).read_bytes().splitlines()
    assert response.content.strip() == lines[2]
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in response.headers["content-security-policy"]


async def test_the_record_with_line_breaks_is_the_same_json(datasette):
    pretty, exact = [await get(datasette, f"{BASE}/1/record{query}") for query in ("?pretty=1", "")]
    assert json.loads(pretty) == json.loads(exact)
    assert len(pretty.splitlines()) > 100


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (lambda file: file.unlink(), 404, "not there any more"),
        (lambda file: file.write_bytes(b""), 409, "shorter than when it was indexed"),
        (lambda file: file.write_bytes(b"x" * file.stat().st_size), 409, "has changed since it was indexed"),
    ],
    ids=["missing", "shortened", "rewritten"],
)
@pytest.mark.parametrize("ending", ["", ".json", "/record"])
async def test_a_record_that_cannot_be_read_says_why(datasette, folder, change, status, words, ending):
    change(folder / "run" / TRACES)
    text = await get(datasette, f"{BASE}/3{ending}", status)
    assert words in text
    if not ending:
        assert "Pick one." in text  # the index knows the beginning of the prompt,
        assert "<dt>right</dt><dd>1</dd>" in text  # the rewards
        assert text.count('<a class="cell') == 3  # and the group


async def test_a_folder_that_nobody_vouches_for_is_not_read(folder, tmp_path_factory):
    moved = tmp_path_factory.mktemp("elsewhere") / "run.sqlite"
    (folder / "run.sqlite").rename(moved)
    text = await read(Datasette([str(moved)]), 3, status=403)
    assert "not among the folders that may be read" in text
    config = {"plugins": {"datasette-rltracer": {"roots": [str(folder)]}}}
    assert ">right</div>" in await read(Datasette([str(moved)], metadata=config), 3)


async def test_configured_roots_stand_in_place_of_the_databases_own_folder(serve, tmp_path_factory):
    config = {"plugins": {"datasette-rltracer": {"roots": [str(tmp_path_factory.mktemp("other"))]}}}
    await read(serve(metadata=config), 3, status=403)


@pytest.mark.parametrize(
    ("error", "status"), [(PermissionError(13, "Permission denied"), 404), (RecursionError(), 422)]
)
async def test_every_reason_has_a_sentence_and_a_status(error, status):
    sentence, found = explained(error)
    assert found == status
    assert sentence.endswith(".")


async def test_a_trajectory_of_a_shard_that_is_gone_is_marked(folder):
    file = folder / "run" / TRACES
    later = Path(str(file).replace("step_1", "step_2"))
    later.parent.mkdir(parents=True)
    file.rename(later)
    index(folder / "run.sqlite", folder / "run")
    datasette = Datasette([str(folder / "run.sqlite")])
    gone = value(folder / "run.sqlite", "select count(*) from trajectories where gone")
    pages = [await datasette.client.get(f"{BASE}/{number}") for number in range(1, 5)]
    assert sum("gone since it was indexed" in page.text for page in pages) == gone
    assert [page.status_code for page in pages].count(404) == gone
