"""A rollout of several outputs on the pages: a branch for each, under the prompt of the first."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasette.app import Datasette

from tests.indexing import index
from tests.table_rows import write_lines

from .conftest import get, read
from .html import words

pytestmark = pytest.mark.asyncio


@pytest.fixture
def datasette(tmp_path: Path) -> Datasette:
    asked = ("How much is 6 times 7?", "Go on from the note.")
    made = [
        {"input": f"user\n{asked[part]}\nassistant\n", "output": said, "gts": "", "score": 0.0, "step": 1, "uid": uid}
        for part, said, uid in ((0, "Let me think.", "p_0_0"), (1, "It is 41.", "p_0_1"), (0, "It is 42.", "p_1_0"))
    ]
    write_lines(tmp_path / "run/1.jsonl", *made)
    index(tmp_path / "run.sqlite", tmp_path / "run")
    return Datasette([str(tmp_path / "run.sqlite")])


async def test_a_group_has_the_prompt_of_the_first_output_and_the_words_of_the_last(datasette: Datasette) -> None:
    page = words(await get(datasette, "/-/rltracer/run/group/1"))
    assert "How much is 6 times 7?" in page
    assert "It is 41." in page
    assert "Go on from the note." not in page
    assert "2 trajectories" in page


async def test_its_page_says_what_its_branches_are(datasette: Datasette) -> None:
    page = words(await read(datasette, 1))
    assert "2 branches, this is branch 2" in page
    assert "a rollout of 2 outputs, each with a context of its own and a branch here" in page
    assert "Let me think." in words(await read(datasette, 1, "?branch=1"))
    record = await get(datasette, "/-/rltracer/run/trajectory/1/record?pretty=1")
    assert "\n}\n{\n" in record
