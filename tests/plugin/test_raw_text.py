"""The raw view shows of every message exactly what is recorded, for every trajectory of the corpora too."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from datasette.app import Datasette

from datasette_rltracer.raw_text import raw_message
from rltracer_sqlite.messages import content_text, normal_message
from tests.indexing import index, rows
from tests.layouts import corpora, expected_sets
from tests.layouts.records import message, paths, tool_call, trace
from tests.table_decoding import READINGS

from .conftest import read, tool_conversation
from .html import visible_text

OTHERS = READINGS if ((corpora() or Path("absent")) / "other").is_dir() else ()
SETS = sorted([*(f"prime-rl/{name}" for name in expected_sets()), *(f"other/{name}" for name in OTHERS)])
PIECE = re.compile(r'data-copy="(text|json)" data-characters="(\d+)">(.*?)</div>', re.DOTALL)


def pieces(page):
    """Return (is JSON, visible text) of the pieces of a page, message by message."""
    messages = page.split('<article class="message raw')[1:]
    return [[(kind == "json", visible_text(text)) for kind, _, text in PIECE.findall(one)] for one in messages]


def recorded_texts(said):
    """Return the texts of a message in the order in which they are recorded, without what is no text."""
    for name, value in said.items():
        if name == "content" and isinstance(value, list):
            yield from (part["text"] for part in value if isinstance(part, dict) and set(part) == {"type", "text"})
        elif name == "tool_calls":
            for call in value:
                yield from (call["id"], call["function"]["name"], call["function"]["arguments"])
                yield from (call[other] for other in call if other in ("namespace", "recorded_type"))
        elif name != "role" and isinstance(value, str):
            yield value


@pytest.mark.asyncio
async def test_every_text_is_shown_as_recorded(datasette):
    shown = pieces(await read(datasette, 1, "?view=raw"))
    for said, found in zip(tool_conversation(), shown, strict=True):
        texts = [text for text in recorded_texts(normal_message(said)) if text is not None]
        assert [text for is_json, text in found if not is_json] == texts


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "text",
    ["<think>a</think>b", "a\r\nb\rc\n", "\n\n  leading", "```\ncode\n```", "\u202eevil\x1b[0m", "<b>&amp;</b>", " "],
)
async def test_nothing_is_laid_out_folded_or_split(serve_traces, text):
    page = await read(serve_traces([trace([message("system", text * 30), message("assistant", text)])]), 1, "?view=raw")
    assert pieces(page) == [[(False, text * 30)], [(False, text)]]
    assert "<details" not in page[page.index('<article class="message raw') : page.index("</main>")]


@pytest.mark.asyncio
async def test_a_long_text_is_cut_with_its_size_and_can_be_shown_in_full(serve_traces):
    long = "word " * 5000 + "THE END"
    datasette = serve_traces([trace([message("user", long), message("assistant", "short")])])
    page = await read(datasette, 1, "?view=raw")
    assert "20,000 of 25,007 characters shown" in page
    link = html.unescape(re.search(r'href="([^"#]+)[^"]*" rel="nofollow">show all 25,007 characters', page)[1])
    assert "view=raw" in link
    assert pieces((await datasette.client.get(link)).text)[0] == [(False, long)]


def test_what_is_no_text_is_shown_as_json():
    said = normal_message(
        message("assistant", [{"type": "audio", "data": "x"}, "plain"], tool_calls=[tool_call("c", "t", {"a": 1})])
    )
    found = [(piece.field, piece.text.text, piece.is_json) for piece in raw_message(said, 0).pieces]
    assert found[1:] == [
        ("content 2", "plain", False),
        ("tool call 1, id", "c", False),
        ("tool call 1, name", "t", False),
        ("tool call 1, arguments", '{"a": 1}', False),
    ]
    assert found[0][2]


def test_a_text_part_with_more_than_its_text_hides_nothing():
    part = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    [piece] = raw_message({"role": "user", "content": [part]}, 0).pieces
    assert "ephemeral" in piece.text.text


@pytest.mark.asyncio
@pytest.mark.skipif(not SETS, reason="the recorded corpora are not beside the repository")
@pytest.mark.parametrize("name", SETS)
async def test_the_corpora_are_shown_as_recorded(tmp_path, name):
    root = corpora() / name
    index(tmp_path / "run.sqlite", root)
    datasette = Datasette(
        [str(tmp_path / "run.sqlite")], metadata={"plugins": {"datasette-rltracer": {"roots": [str(root)]}}}
    )
    [(count,)] = rows(tmp_path / "run.sqlite", "select count(*) from trajectories")
    assert count
    graphs = [await check_trajectory(datasette, number) for number in range(1, count + 1)]
    assert any(graphs) == ("rollouts-v1" in name or "episodes" in name or "evals-v1" in name)


async def check_trajectory(datasette, number):
    """Check every branch of a trajectory: as many as there are leaves, each with its own messages and texts.

    Returns whether its record is a graph.
    """
    path = f"/-/rltracer/run/trajectory/{number}"
    response = await datasette.client.get(f"{path}.json")
    if response.status_code != 200:
        assert (await datasette.client.get(f"{path}?view=raw")).status_code == response.status_code
        return False
    told = response.json()
    branches = told["branches"]
    recorded = recorded_branches((await datasette.client.get(f"{path}/record")).content, told["uid"])
    assert recorded is None or len(branches) == len(recorded)
    for branch in branches:
        query = f"?branch={branch['branch']}"
        if told["branch"] != branch["branch"]:
            told = (await datasette.client.get(f"{path}.json{query}")).json()
        messages = told["messages"]
        shown = await all_pieces(datasette, number, f"{query}&view=raw")
        assert len(shown) == branch["messages"]
        for said, found in zip(messages, shown, strict=True):
            texts = [text[:20_000] for text in recorded_texts(said) if text is not None]
            assert [text for is_json, text in found if not is_json] == texts
        if recorded:
            assert [m["role"] for m in messages] == [m["role"] for m in recorded[branch["branch"] - 1]]
            contents = [content_text(m.get("content")) for m in recorded[branch["branch"] - 1]]
            assert [content_text(m.get("content")) for m in messages] == contents
    return bool(recorded)


async def all_pieces(datasette, number, query):
    """Return the pieces of all messages of a branch, over as many pages as they take."""
    found = []
    while query:
        page = await read(datasette, number, query)
        found += pieces(page)
        later = re.search(r'<a href="[^"?]*([^"]*)" rel="next">later messages', page)
        query = html.unescape(later[1]) if later else None
    return found


def recorded_branches(record, uid):
    """Return the messages of each path of a recorded graph in the order of its leaves; None where there is no graph."""
    try:
        found = json.loads(record)
    except ValueError:
        return None
    traces = found.get("traces") if isinstance(found.get("traces"), list) else [found]
    nodes = next((one["nodes"] for one in traces if one.get("id") == uid and one.get("nodes")), None)
    return nodes and [[nodes[place]["message"] for place in path] for path in paths(nodes)]
