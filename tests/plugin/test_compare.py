"""Two trajectories side by side: how their turns are aligned, where they part, and the page that shows it."""

from __future__ import annotations

import html
import re
import sqlite3
from contextlib import closing

import pytest
from datasette.app import Datasette
from hypothesis import given
from hypothesis import strategies as st

from datasette_rltracer.alignment import align
from tests.index_factory import make_index
from tests.layouts.records import message, nodes_of, trace

from .conftest import TRACES, get
from .hostile import PAYLOADS, Elements, hostile_trace
from .html import links, words

COMPARE = "/-/rltracer/run/compare"


def call(name, arguments="{}", id="c"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def conversation(*texts, role="assistant"):
    """Return a prompt and the messages that follow it."""
    return [message("user", "Prompt."), *(message(role, text) for text in texts)]


def shape(rows):
    """Return each row as (left message, right message, mark)."""
    return [
        (row.left and row.left.number, row.right and row.right.number, "same" if row.same else "first" * row.first)
        for row in rows
    ]


@pytest.mark.parametrize(
    ("left", "right", "shared", "rows"),
    [
        (["a", "b"], ["a", "c"], 2, [(2, 2, "first")]),
        (["a"], ["b"], 1, [(1, 1, "first")]),
        (["a"], ["a"], 2, []),
        (["a"], ["a", "b"], 2, [(None, 2, "first")]),
        (["a", "b"], [], 1, [(1, None, "first"), (2, None, "")]),
        (["a", "same", "b"], ["c", "same", "d"], 1, [(1, 1, "first"), (2, 2, "same"), (3, 3, "")]),
        (["a", "x", "same"], ["b", "same"], 1, [(1, 1, "first"), (2, None, ""), (3, 2, "same")]),
        (["a", "b", "c"], ["c", "d", "a"], 1, [(1, 1, "first"), (2, 2, ""), (3, 3, "")]),
        (["a", "b", "c"], ["d", "a", "b"], 1, [(None, 1, "first"), (1, 2, "same"), (2, 3, "same"), (3, None, "")]),
    ],
)
def test_alignment(left, right, shared, rows):
    found = align(conversation(*left), conversation(*right))
    assert (found.shared, shape(found.rows)) == (shared, rows)
    assert found.identical == (left == right)


def test_a_turn_says_where_the_other_side_has_the_same():
    found = align(conversation("a", "b", "c"), conversation("c", "d", "e", "f", "g"))
    elsewhere = [[side and side.elsewhere for side in (row.left, row.right)] for row in found.rows]
    assert elsewhere == [[None, 3], [None, None], [1, None], [None, None], [None, None]]
    assert [row.ended for row in found.rows] == [False, False, False, True, True]


def test_a_side_that_is_not_compared_to_its_end_has_not_ended():
    found = align(conversation(*["x" * 300_000] * 30), conversation(*"abcdefghijklmnopqrstuvwxyz"))
    assert found.left.following is not None
    assert found.rows[-1].left is None
    assert not any(row.ended for row in found.rows)


def test_turns_that_differ_stand_beside_their_own_kind():
    left = [message("user", "one"), message("assistant", "two"), message("user", "three")]
    right = [message("assistant", "zwei"), message("user", "drei")]
    assert shape(align(left, right).rows) == [(0, None, "first"), (1, 0, ""), (2, 1, "")]


def test_ids_of_calls_are_chance():
    sides = [
        [message("assistant", "", tool_calls=[call("ls", id=id)]), message("tool", "a b", tool_call_id=id)]
        for id in ("call_1", "call_2")
    ]
    assert align(*sides).identical


def test_a_call_and_its_results_are_not_torn_apart():
    calls = [call("ls", id="1"), call("wc", id="2")]
    sides = [
        [
            message("user", "Prompt."),
            message("assistant", "", tool_calls=calls),
            message("tool", "same", tool_call_id="1"),
            message("tool", text, tool_call_id="2"),
        ]
        for text in ("left", "right")
    ]
    found = align(*sides)
    assert (found.shared, shape(found.rows)) == (1, [(1, 1, "first")])
    texts = [(block.kind, block.same) for block in found.rows[0].left.blocks]
    assert texts == [("call", True), ("result", True), ("call", True), ("result", False)]


def test_the_first_text_that_differs_is_told_apart_at_a_word():
    found = align(conversation("The answer is 14, since"), conversation("The answer is 17, since"))
    [row] = found.rows
    assert [side.blocks[0].shared for side in (row.left, row.right)] == [len("The answer is ")] * 2


@pytest.mark.parametrize("more", [0, 1], ids=["as many", "one more"])
def test_what_is_the_same_in_two_turns_of_very_many_calls(more):
    names = [f"f{number % 3}" for number in range(120)]
    others = [*names[:40], *["other"] * (40 + more), *names[80:]]
    sides = [[message("assistant", "", tool_calls=[call(name) for name in side])] for side in (names, others)]
    [row] = align(*sides).rows
    for side, count in ((row.left, 40), (row.right, 40 + more)):
        assert [block.same for block in side.blocks] == [True] * 40 + [False] * count + [True] * 40


@given(*[st.lists(st.sampled_from(["a", "b", "c"]), max_size=12)] * 2)
def test_every_turn_stands_once_and_in_its_order(left, right):
    found = align(conversation(*left), conversation(*right))
    for number, texts in (("left", left), ("right", right)):
        numbers = [getattr(row, number).number for row in found.rows if getattr(row, number)]
        assert numbers == list(range(found.shared, len(texts) + 1))
    assert sum(row.first for row in found.rows) == (left != right)


@pytest.mark.asyncio
async def test_the_page_shows_where_they_part(serve_traces):
    traces = [
        trace(conversation("The sum is 12.", "So 12."), id="l", rewards={"ok": {"score": 1.0}}, stop_condition="done"),
        trace(conversation("The sum is 13.", "So 12."), id="r", rewards={"ok": {"score": 0.0}}, stop_condition="limit"),
    ]
    page = await get(serve_traces(traces), f"{COMPARE}?a=1&b=2")
    said = words(page)
    assert "The first message is the same (user): 7 characters" in said
    assert "Here they part, in message 2." in said
    assert "The same on both sides: assistant, message 3" in said
    assert "reward 1 0" in said
    assert "stopped done limit" in said
    assert '<span class="shared">The sum is </span><span class="parting"' in page
    assert said.index("The first message") < said.index("Here they part") < said.index("The same on both sides")


@pytest.mark.asyncio
async def test_an_advantage_that_is_not_recorded_is_derived_as_on_the_page_of_the_group(serve_traces):
    told = [({"advantage": 0.25}, 0), ({}, 0.5), ({}, 1)]
    traces = [trace(conversation(str(r)), id=f"t{r}", reward=r, info=info) for info, r in told]
    datasette = serve_traces(traces)
    page = words(await get(datasette, f"{COMPARE}?a=1&b=3"))
    assert "advantage +0.25 +0.5 derived" in page
    assert "A derived advantage is the reward minus the mean of its prompt group." in page
    assert "+0.5 derived" in words(await get(datasette, "/-/rltracer/run/group/1"))
    for number, said in ((1, "+0.25 run"), (3, "+0.5 derived run"), (2, "0 derived run")):
        page = words(await get(datasette, f"/-/rltracer/run/trajectory/{number}"))
        assert f" advantage {said} · step 1 · " in page
    assert "Training derived advantage the reward minus the mean of its prompt group in a training" in page


@pytest.mark.asyncio
async def test_the_best_and_the_worst_of_a_group(datasette):
    group = re.search(r"/group/(\d+)", await get(datasette, "/-/rltracer/run/trajectory/3"))[1]
    for query, pair in ((f"group={group}", "a=3&b=2"), ("a=2", "a=2&b=3"), ("a=3", "a=3&b=2"), ("a=4", "a=4&b=3")):
        response = await datasette.client.get(f"{COMPARE}?{query}")
        assert (response.status_code, response.headers["location"]) == (302, f"{COMPARE}?{pair}")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400), ("a=x&b=1", 400), ("a=1&b=-1", 400), ("a=1&b=99", 404), ("a=99999999999999999999&b=1", 400),
        ("group=99", 404), ("a=1", 404), ("a=2&b=3&a_branch=9", 404), ("a=2&b=3&a_branch=0", 404), ("a=2&b=2", 200),
    ],
)  # fmt: skip
async def test_what_cannot_be_compared(datasette, query, status):
    page = await get(datasette, f"{COMPARE}?{query}", status)
    assert "Traceback" not in page


@pytest.mark.asyncio
async def test_the_same_trajectory_is_the_same(datasette):
    assert "They are the same, message for message." in words(await get(datasette, f"{COMPARE}?a=1&b=1"))


@pytest.mark.asyncio
async def test_the_top_says_whether_the_prompt_is_the_same(serve_traces):
    asked = [("One?", "a"), ("One?", "a"), ("One?", "b"), ("Two?", "a")]
    said = [[message("user", words), message("assistant", "Yes.")] for words, _ in asked]
    tasks = [{"idx": 0, "name": task} for _, task in asked]
    datasette = serve_traces([trace(one, id=str(n), task=tasks[n]) for n, one in enumerate(said)])
    told = {2: "same prompt side by side", 3: "different prompts, in the same words side", 4: "different prompts side"}
    for other, words_of in told.items():
        assert f"Trajectories 1 and {other} {words_of}" in words(await get(datasette, f"{COMPARE}?a=1&b={other}"))


@pytest.mark.asyncio
async def test_a_branch_can_be_chosen(serve_traces):
    said = [message("user", "Pick."), message("assistant", "left"), message("assistant", "right")]
    datasette = serve_traces([trace(nodes=nodes_of(said, [None, 0, 0])), trace(said[:2])])
    assert "They are the same" in await get(datasette, f"{COMPARE}?a=1&b=2&a_branch=1")
    page = words(await get(datasette, f"{COMPARE}?a=1&b=2"))
    assert "branch 2 of 2" in page
    assert "Here they part, in message 2" in page


@pytest.mark.asyncio
async def test_siblings_are_one_click_away(datasette):
    page = await get(datasette, f"{COMPARE}?a=2&b=3")
    assert strip(page) == [
        (f"{COMPARE}?a=2&b=3", True, "right"),
        (f"{COMPARE}?a=3&b=2", True, "left"),
        (f"{COMPARE}?a=2&b=4", False, ""),
    ]
    assert (links(page, "previous"), links(page, "next")) == ([], [f"{COMPARE}?a=2&b=4"])
    assert links(page, "swap sides") == [f"{COMPARE}?a=3&b=2"]


def strip(page):
    """Return of each cell of the strip where it leads, whether it is marked, and the side that stands after it."""
    cell = r'<a class="cell \w+" href="([^"]+)"( aria-current="page")?[^\n]*?</a>(?: <span class="side">(.*?)</span>)?'
    return [(html.unescape(address), bool(now), side) for address, now, side in re.findall(cell, page)]


@pytest.mark.asyncio
async def test_both_sides_are_in_the_strip_of_a_group_that_is_too_large_for_it(tmp_path):
    rows = [{"reward": float(number)} for number in range(400, 0, -1)]
    datasette = Datasette([str(make_index(tmp_path / "run.sqlite", rows))])
    for left, shown in ((1, 257), (390, 257), (100, 256)):
        page = await get(datasette, f"{COMPARE}?a={left}&b=200", 404)
        marked = {side: address for address, now, side in strip(page) if now}
        assert marked == {"left": f"{COMPARE}?a=200&b={left}", "right": f"{COMPARE}?a={left}&b=200"}
        assert len(strip(page)) == shown
        assert f"{shown} of 400, best reward first" in words(page)


@pytest.mark.asyncio
async def test_a_trajectory_beside_itself_is_marked_once_as_both(datasette):
    assert strip(await get(datasette, f"{COMPARE}?a=2&b=2")) == [
        (f"{COMPARE}?a=2&b=3", False, ""),
        (f"{COMPARE}?a=2&b=2", True, "left and right"),
        (f"{COMPARE}?a=2&b=4", False, ""),
    ]


@pytest.mark.asyncio
async def test_trajectories_of_two_prompts_say_so_and_offer_the_group_of_the_right_one(serve_traces):
    asked = ["One?", "One?", "Two?", "Two?"]
    said = [[message("user", one), message("assistant", f"{number}")] for number, one in enumerate(asked)]
    datasette = serve_traces([trace(one, id=str(n), reward=n % 2) for n, one in enumerate(said)])
    page = await get(datasette, f"{COMPARE}?a=1&b=3")
    shown = words(page)
    assert (
        "side by side, of different prompt groups: 1 and 2 · swap sides choose the right side, of prompt group 2:"
        in shown
    )
    assert "They answer different prompts, so what stands beside one another below need not be about the same." in shown
    assert strip(page) == [(f"{COMPARE}?a=1&b=4", False, ""), (f"{COMPARE}?a=1&b=3", True, "right")]
    assert links(page, "previous") == [f"{COMPARE}?a=1&b=4"]
    alike = words(await get(datasette, f"{COMPARE}?a=1&b=2"))
    assert "choose the right side: ✓" in alike
    assert "They answer" not in alike


@pytest.mark.asyncio
async def test_the_rule_is_named_once_or_of_each_where_they_have_two(tmp_path):
    path = make_index(tmp_path / "run.sqlite", [{"run": "one"}, {"run": "two"}], rule=("reward", 1.0))
    assert "Success: reward >= 1. the same:" in words(await get(Datasette([str(path)]), f"{COMPARE}?a=1&b=2", 404))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update runs set success_threshold = 0.5 where id = 2")
    page = words(await get(Datasette([str(path)]), f"{COMPARE}?a=1&b=2", 404))
    assert "Success of trajectory 1: reward >= 1. Success of trajectory 2: reward >= 0.5." in page


@pytest.mark.asyncio
async def test_a_record_that_cannot_be_read_leaves_the_facts(datasette, folder):
    (folder / "run" / TRACES).unlink()
    page = words(await get(datasette, f"{COMPARE}?a=2&b=3", 404))
    assert "not there any more" in page
    assert "reward 0.5 1" in page


@pytest.mark.asyncio
async def test_long_conversations_are_compared_from_where_they_part(serve_traces):
    same = [f"line {count}" for count in range(400)]
    datasette = serve_traces([trace(conversation(*same, last)) for last in ("left", "right")])
    page = words(await get(datasette, f"{COMPARE}?a=1&b=2"))
    assert "The first 401 messages are the same" in page
    assert "messages 1 – 200 of 401 shown" in page
    assert "Here they part, in message 402." in page


@pytest.mark.asyncio
async def test_every_link_leads_somewhere_below_the_base_url(serve):
    datasette = serve(settings={"base_url": "/prefix/"})
    page = await get(datasette, f"{COMPARE}?a=2&b=3")
    found = {html.unescape(link) for link in re.findall(r'(?:href|src)="(/[^"#]+)', page)}
    assert found
    for address in found:
        assert address.startswith("/prefix/")
        assert (await datasette.client.get(address.removeprefix("/prefix"))).status_code in (200, 302), address


@pytest.mark.asyncio
async def test_addresses_that_people_guess_lead_to_the_comparison(serve):
    datasette = serve(settings={"base_url": "/prefix/"})
    for guessed in (f"{COMPARE}/2/3", "/-/rltracer/run/trajectory/2?with=3"):
        response = await datasette.client.get(guessed)
        assert (response.status_code, response.headers["location"]) == (302, f"/prefix{COMPARE}?a=2&b=3"), guessed
    assert "has no column with" in await get(datasette, "/-/rltracer/run/trajectory/2?with=the+best", 400)


@pytest.mark.asyncio
async def test_the_page_needs_permission(serve):
    datasette = serve(metadata={"databases": {"run": {"tables": {"trajectories": {"allow": {"id": "root"}}}}}})
    for query in ("a=2&b=3", "a=2", "group=2"):
        await get(datasette, f"{COMPARE}?{query}", 403)


@pytest.mark.asyncio
@pytest.mark.parametrize("text", PAYLOADS)
async def test_a_payload_everywhere_is_only_text(serve_traces, text):
    page = await get(serve_traces([hostile_trace(text), trace([message(text, text + "x")])]), f"{COMPARE}?a=1&b=2")
    parser = Elements()
    parser.feed(page[page.index('<div class="reading">') : page.index("</main>")])
    for tag, attributes in parser.found:
        assert tag not in {"script", "img", "svg", "iframe", "object", "template", "style", "form"}
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "/").startswith(("/", "#"))
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
