"""Pages say why a text is missing, or is none that anybody wrote, and what a search cannot find."""

from __future__ import annotations

import pytest
from datasette.app import Datasette

from rltracer_sqlite.tokens.templates import NO_TEXT
from tests.commands import indexed
from tests.layouts import append, message, trace
from tests.test_wrong_tokenizer import LONG, SHARD, wrong
from tests.token_layouts import micro_batch, question, write_bin

from .conftest import get
from .html import words

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/x"


@pytest.fixture
def shards(tmp_path):
    write_bin(tmp_path / "run" / SHARD, [micro_batch("g20", [LONG, question()])])
    return tmp_path / "run"


async def test_token_ids_say_why_they_have_no_text(shards, tmp_path):
    indexed(tmp_path / "x.sqlite", shards, "--fts")
    datasette = Datasette([str(tmp_path / "x.sqlite")])
    page = words(await get(datasette, f"{PAGE}/trajectory/1"))
    assert NO_TEXT in page
    assert "Its messages are recorded as token ids only." in page
    assert "No message was recorded" not in page
    group = words(await get(datasette, f"{PAGE}/group/1"))
    assert NO_TEXT in group
    assert group.count("no text ") >= 2  # in the place of the last words of either
    beside = words(await get(datasette, f"{PAGE}/compare?a=1&b=2"))
    assert beside.count(NO_TEXT) == 2
    assert "There is nothing to compare: neither has a message." in beside
    assert "message for message" not in beside
    found = words(await get(datasette, f"{PAGE}/search?q=anything"))
    assert "0 of 2 trajectories can be searched; 2 have no text: token ids without a tokenizer." in found
    assert "came later" not in found


async def test_a_tokenizer_that_does_not_fit_is_told_with_each_text(shards, tmp_path):
    indexed(tmp_path / "x.sqlite", shards, "--tokenizer", wrong(tmp_path / "other"))
    datasette = Datasette([str(tmp_path / "x.sqlite")])
    for number in (1, 2):
        assert "seems not to fit these files: none of" in words(await get(datasette, f"{PAGE}/trajectory/{number}"))


async def test_a_run_with_problems_is_not_called_read_completely(tmp_path):
    append(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", trace([message("user", "?")]), {"no": "rollout"})
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    datasette = Datasette([str(tmp_path / "x.sqlite")])
    for address in (f"{PAGE}/", f"{PAGE}/run/1"):
        page = words(await get(datasette, address))
        assert "read to the end" in page
        assert "read completely" not in page
        assert "1 problem" in page
