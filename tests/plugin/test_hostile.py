"""Whatever a trajectory says, its page stays inert: no script, no foreign address, no hidden character, no crash."""

from __future__ import annotations

import json
import re

import pytest

from tests.layouts.records import message, tool_call, trace

from .conftest import get, read
from .hostile import PAYLOADS, hostile_trace, reading_part

pytestmark = pytest.mark.asyncio


@pytest.fixture
def serve_trace(serve_traces):
    return lambda found, **options: serve_traces([found], **options)


@pytest.mark.threat("T30")
@pytest.mark.parametrize("text", PAYLOADS)
async def test_a_payload_everywhere_is_only_text(serve_trace, text):
    page = await read(serve_trace(hostile_trace(text)), 1)
    for tag, attributes in reading_part(page):
        assert tag not in {"script", "img", "svg", "iframe", "object", "template", "style"}
        assert tag != "form" or attributes["action"].startswith("/-/rltracer/")  # the find of the page
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "/").startswith(("/", "#"))
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)


@pytest.mark.parametrize("text", PAYLOADS)
async def test_a_payload_everywhere_is_whole_in_json_and_record(serve_trace, text):
    datasette = serve_trace(hostile_trace(text))
    found = json.loads(await get(datasette, "/-/rltracer/run/trajectory/1.json"))
    # Half a surrogate pair is no text; decoding a record replaces it, the record itself keeps it.
    assert found["messages"][0]["content"] == text.replace("\ud800", "\N{REPLACEMENT CHARACTER}")
    response = await datasette.client.get("/-/rltracer/run/trajectory/1/record")
    assert response.headers["content-type"].startswith("text/plain")
    assert json.loads(response.content)["traces"][0]["stop_condition"] == text


async def test_a_run_of_a_hostile_name(serve_trace):
    datasette = serve_trace(trace([message("user", "hi")]), folder='<img src=x onerror="alert(1)">')
    assert "img" not in [tag for tag, _ in reading_part(await read(datasette, 1))]


@pytest.mark.threat("T30")
@pytest.mark.parametrize(
    "url", ["https://example.org/pixel.png", "//example.org/x", "data:image/svg+xml;base64,PHN2Zy8+", "/-/logout"]
)
async def test_no_address_in_a_trajectory_is_fetched_or_linked(serve_trace, url):
    said = [message("user", [{"type": "image_url", "image_url": {"url": url}}]), message("assistant", url)]
    page = await read(serve_trace(trace(said)), 1)
    assert f">{url}<" in page
    assert not [tag for tag, attributes in reading_part(page) if url in attributes.values()]


@pytest.mark.parametrize("depth", [200, 900])
async def test_deep_json(serve_trace, depth):
    deep = {"a": 1}
    for _ in range(depth):
        deep = {"a": deep}
    arguments = '{"a":' * 50_000 + "1" + "}" * 50_000
    said = [message("user", "hi", extra=deep), message("assistant", "", tool_calls=[tool_call("c", "t", arguments)])]
    datasette = serve_trace(trace(said, info={"deep": deep}))
    page = await datasette.client.get("/-/rltracer/run/trajectory/1")
    assert page.status_code in (200, 422)
    assert (await datasette.client.get("/-/rltracer/run/trajectory/1.json")).status_code in (200, 422)
    assert "Traceback" not in page.text


async def test_numbers_that_json_does_not_have(serve_trace):
    datasette = serve_trace(trace([message("user", "hi")], metrics={"bad": float("nan"), "huge": float("inf")}))
    assert "<dt>bad</dt>" in await read(datasette, 1)
    found = json.loads(await get(datasette, "/-/rltracer/run/trajectory/1.json"), parse_constant=pytest.fail)
    assert set(found["metadata"]["metrics"]) == {"bad", "huge"}


async def test_one_line_of_a_million_characters(serve_trace):
    page = await read(serve_trace(trace([message("user", "x" * 1_000_000)])), 1)
    assert "20,000 of 1,000,000 characters shown" in page
    assert len(page) < 60_000


@pytest.mark.parametrize("start", ["-1", "x", "9" * 40, "999999999", ""])
async def test_any_start_may_be_asked_for(serve_trace, start):
    await read(serve_trace(trace([message("user", "hi")])), 1, f"?start={start}&full={start}")
