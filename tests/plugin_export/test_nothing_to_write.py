"""A download of nothing is refused with the reason, which the preview gives too; no file is ever empty."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from datasette.app import Datasette

from tests.export_runs import rollout, write_steps
from tests.indexing import index
from tests.table_answers import open_instruct
from tests.test_table_presets import source_named

from .conftest import get

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/run/export"
PERSON = {"accept": "text/html"}
TEXTLESS = (
    "Nothing is left: the condition has text is met by 0 of 2 trajectories. Token ids need "
    "their tokenizer; index the run again with --tokenizer PATH."
)
UNNAMED = "Nothing is left: what the filters leave was left out when it was read: tool call without a name (1)."


@pytest.fixture
def textless(tmp_path: Path) -> Datasette:
    open_instruct(tmp_path / "run")
    index(tmp_path / "run.sqlite", tmp_path / "run", source=source_named("open-instruct"))
    return Datasette([str(tmp_path / "run.sqlite")])


@pytest.fixture
def nameless(tmp_path: Path) -> Datasette:
    record = rollout("a")
    record["nodes"][2]["message"]["tool_calls"] = [{"id": "x"}]
    write_steps(tmp_path / "run", {1: [record]})
    index(tmp_path / "run.sqlite", tmp_path / "run")
    return Datasette([str(tmp_path / "run.sqlite")])


def alert(html: str) -> str:
    [said] = re.findall(r'role="alert">([^<]+)<', html)
    return unescape(said)


@pytest.mark.parametrize("mode", ["sft", "rl", "preference"])
async def test_token_ids_are_refused_in_each_kind_of_data(textless: Datasette, mode: str) -> None:
    refused = await get(textless, f"/run/trajectories.{mode}?_acceptance=any", 400, headers=PERSON)
    assert alert(refused.text) == TEXTLESS
    assert '<form class="export"' in refused.text
    to_program = await get(textless, f"/run/trajectories.{mode}?_acceptance=any", 400)
    assert TEXTLESS in unescape(to_program.text)


async def test_a_preview_tells_why_there_is_no_row(textless: Datasette) -> None:
    html = unescape((await get(textless, f"{PAGE}?_preview=sft&_acceptance=any&_per_prompt=2")).text)
    assert "0 trajectories of 0 prompts" in html
    assert TEXTLESS in html
    assert re.search(r'>has text</td><td class="n" data-label="kept">0</td><td class="n" data-label="dropped">2<', html)


async def test_what_reading_leaves_out_is_refused_and_previewed_with_its_reason(nameless: Datasette) -> None:
    assert alert((await get(nameless, "/run/trajectories.sft", 400, headers=PERSON)).text) == UNNAMED
    html = unescape((await get(nameless, f"{PAGE}?_preview=sft")).text)
    assert "Left out when they were read for this preview: tool call without a name (1)." in html


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("_acceptance=failed&run_id=2", "the condition accepted is met by 0 of"),
        ("_min_pass_rate=0.3&_max_pass_rate=0.4", "the condition difficulty is met by 0 of"),
        ("_field=turns>=99", "the condition turns >= 99 is met by 0 of"),
        ("_split=eval&run_id=2", "The run two has no trajectory with split eval. It has split train."),
        ("success=0&_acceptance=passed&run_id=1", "the condition rows of the table is met by 0 of"),
    ],
)
async def test_no_filter_gives_an_empty_file(datasette: Datasette, query: str, said: str) -> None:
    response = await get(datasette, f"/run/trajectories.sft?{query}", 400, headers=PERSON)
    assert said in alert(response.text)
