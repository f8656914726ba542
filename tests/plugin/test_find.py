"""Finding a text within a trajectory: counts, marks, folds, and pages that stay inert."""

from __future__ import annotations

import html
import re

import pytest

from datasette_rltracer.find import find_in
from datasette_rltracer.find_marks import found
from tests.layouts.records import message, nodes_of, trace

from .conftest import get, read
from .hostile import PAYLOADS, hostile_trace, reading_part
from .html import links, visible_text, words


@pytest.fixture
def serve_trace(serve_traces):
    return lambda *said, **extra: serve_traces([trace(list(said), **extra)])


def marks(page):
    return [html.unescape(mark) for mark in re.findall(r"<mark[^>]*>(.*?)</mark>", page, re.DOTALL)]


@pytest.mark.parametrize(
    ("text", "find", "counts"),
    [
        ("one two One", "one", [2]),
        ("one\n  two", "one two", [1]),
        ("a.b a+b", "a.b", [1]),  # no pattern, only text
        ("<b>&amp;</b>", "&amp;", [1]),
        ("<b>&amp;</b>", "<b>", [1]),
        ("nothing", "x", []),
        ("nothing", "   ", None),
        ("nothing", None, None),
    ],
)
def test_counts(text, find, counts):
    result = find_in([message("assistant", text)], find)
    assert (result and [one.count for one in result.listed]) == counts


def test_every_recorded_text_of_a_message_counts():
    call = {"id": "c", "type": "function", "function": {"name": "alpha", "arguments": '{"x": "alpha alpha"}'}}
    said = message("assistant", "alpha", reasoning_content="alpha", tool_calls=[call])
    assert find_in([message("user", "no"), said], "ALPHA").count == 5


@pytest.mark.asyncio
async def test_marks_and_counts_agree(datasette):
    page = await read(datasette, 1, "?find=stock.csv")
    assert "2 matches in 2 of 7 messages" in words(page)
    assert marks(page) == ["stock.csv", "stock.csv"]
    assert re.findall(r'<mark id="([^"]+)"', page) == ["found-2", "found-3"]
    for number in (3, 4):
        [address] = [link for link in links(page, f"#{number}") if "found" in link]
        assert address.endswith(f"#found-{number - 1}")
        assert f'id="found-{number - 1}"' in await get(datasette, address.partition("#")[0])


@pytest.mark.asyncio
async def test_the_text_around_the_marks_is_unchanged(datasette):
    plain, searched = await read(datasette, 1), await read(datasette, 1, "?find=once")
    assert marks(searched) == ["Once"]
    articles = ["".join(re.findall(r"<article.*?</article>", page, re.DOTALL)) for page in (plain, searched)]
    assert visible_text(articles[0]) == visible_text(articles[1])


@pytest.mark.asyncio
async def test_a_match_opens_the_folds_around_it(datasette):
    assert '<details open class="folded reasoning"' in await read(datasette, 1, "?find=compare")
    assert "<details open class" not in await read(datasette, 1, "?find=once")


@pytest.mark.asyncio
async def test_a_match_over_code_and_invisible_characters(serve_trace):
    datasette = serve_trace(message("assistant", "see:\n```python\nprint(1)\n```\nand zero\u200bwidth"))
    page = await read(datasette, 1, "?find=see:+```python+print(1)")
    assert "".join(marks(page)).split() == ["see:", "```python", "print(1)"]
    assert "1 match in" in words(page)


@pytest.mark.asyncio
async def test_raw_text_is_searched_as_it_is_recorded(datasette):
    page = await read(datasette, 1, '?view=raw&find="limit":')
    assert marks(page) == ['"limit":']
    assert 'name="view" value="raw"' in page


@pytest.mark.asyncio
async def test_a_match_behind_the_cut_leads_to_the_whole_message(serve_trace):
    datasette = serve_trace(message("user", "word " * 5000 + "needle"))
    page = await read(datasette, 1, "?find=needle")
    assert marks(page) == []
    [address] = [link for link in links(page, "#1") if "found" in link]
    assert "full=0" in address
    assert marks(await get(datasette, address.partition("#")[0])) == ["needle"]


@pytest.mark.asyncio
async def test_a_match_on_a_later_page_leads_there(serve_trace):
    datasette = serve_trace(*(message("user", f"line {count}.") for count in range(450)))
    page = await read(datasette, 1, "?find=line+449")
    assert marks(page) == []
    assert "1 match in 1 of 450 messages" in words(page)
    [address] = [link for link in links(page, "#450") if "found" in link]
    assert marks(await get(datasette, address.partition("#")[0])) == ["line 449"]


@pytest.mark.asyncio
async def test_the_form_keeps_the_branch_and_works_without_a_script(serve_trace):
    said = [message("user", "Pick."), message("assistant", "left"), message("assistant", "right")]
    datasette = serve_trace(nodes=nodes_of(said, [None, 0, 0]))
    page = await read(datasette, 1, "?branch=1&find=left")
    form = page[page.index('class="find"') : page.index("</form>", page.index('class="find"'))]
    assert 'name="branch" value="1"' in form
    assert 'name="find" value="left"' in form
    assert marks(page) == ["left"]
    assert "No match in this branch." in words(await read(datasette, 1, "?find=left"))


@pytest.mark.asyncio
@pytest.mark.parametrize("text", PAYLOADS)
@pytest.mark.parametrize("view", ["", "&view=raw"])
async def test_a_payload_that_is_looked_for_is_only_text(serve_traces, text, view):
    datasette = serve_traces([hostile_trace(text)])
    wanted = text.replace("\ud800", "?")
    response = await datasette.client.get(f"/-/rltracer/run/trajectory/1?{view}", params={"find": wanted})
    assert response.status_code == 200
    for tag, attributes in reading_part(response.text):
        assert tag not in {"script", "img", "svg", "iframe", "object", "template", "style"}
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "/").startswith(("/", "#"))


@pytest.mark.parametrize("broken", ["<a", "a < b", "</div></div>", '<div data-copy="x">alpha', "<DIV>alpha</DIV>"])
def test_html_that_is_not_ours_is_left_as_it_is(broken):
    assert str(found(broken, find_in([message("user", "alpha")], "alpha"))) == broken


def test_many_messages_and_matches_are_bounded(monkeypatch):
    monkeypatch.setattr("datasette_rltracer.find.MOST_LISTED", 10)
    monkeypatch.setattr("datasette_rltracer.find.MOST_CHARACTERS", 50)
    result = find_in([message("user", "alpha")] * 100, "alpha")
    assert (result.searched, result.count, len(result.listed)) == (10, 10, 10)


@pytest.mark.parametrize(
    ("text", "find", "expected"),
    [
        ("One \n two  one\ttwo", "one two", ["One \n two", "one\ttwo"]),
        ("\n\n  a\n\n\nb  c", "b c", ["b  c"]),
        ("İİ one ẞ", "ONE ẞ", ["one ẞ"]),
        ("aaaa", "aa", ["aa", "aa"]),
        ("a  ", "a", ["a"]),
    ],
)
def test_spans_are_places_in_the_text_itself(text, find, expected):
    wanted = find_in([message("user", text)], find)
    assert [text[first:last] for first, last in wanted.spans(text, 9)] == expected
    assert wanted.count == len(expected)


def test_marks_are_bounded():
    page = '<article id="m1"><div data-copy="text">' + "a " * 50_000 + "</div></article>"
    assert found(page, find_in([message("user", "a " * 50_000)], "a")).count("<mark") == 5_000
