"""The expected answer on the pages: among the facts, once under a prompt, and beside another one."""

from __future__ import annotations

import json
import re

import pytest

from datasette_rltracer.expected import MOST_ANSWER, expected_of_all
from tests.layouts.records import message, trace

from .conftest import TRACES, get, read
from .hostile import PAYLOADS
from .html import visible_text, words

pytestmark = pytest.mark.asyncio
BASE = "/-/rltracer/run"
LONG = "word " * 200


def expecting(*answers, key=None):
    """Return a trace for each answer, all of the same prompt; with a `key` also of the same task."""
    for number, answer in enumerate(answers):
        task = {"type": "T", "data": {} if answer is None else {"answer": answer}} | ({"key": key} if key else {})
        rewards = {"right": {"score": float(number), "weight": 1.0}}
        said = [message("user", "How many?"), message("assistant", str(number))]
        yield trace(said, id=f"t{number}", task=task, rewards=rewards)


def facts(page):
    return page[page.index('<aside class="facts"') : page.index("</aside>")]


def prompt(page):
    return page[page.index('<section class="prompt"') : page.index("</section>", page.index('<section class="prompt"'))]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("240", "Expected answer 240 Rewards"),
        (None, "Expected answer not recorded Rewards"),
        (["a", 1], 'Expected answer ["a", 1] Rewards'),
        (LONG, "Expected answer 1,000 characters · word word"),
    ],
    ids=["text", "none", "list", "long"],
)
async def test_it_stands_first_among_the_facts(serve_traces, answer, said):
    page = await read(serve_traces(list(expecting(answer))), 1)
    assert words(facts(page)).startswith(f"Expected answer {said.removeprefix('Expected answer ')}")
    assert ("<details" in facts(page)) == (answer == LONG)


async def test_all_of_a_long_one_is_there_up_to_a_bound(serve_traces):
    datasette = serve_traces(list(expecting(LONG, "x" * (MOST_ANSWER + 1))))
    assert LONG in facts(await read(datasette, 1))
    cut = facts(await read(datasette, 2))
    assert "x" * MOST_ANSWER in cut
    assert "x" * (MOST_ANSWER + 1) not in cut
    assert "20,000 of 20,001 characters shown · raw record" in words(cut)


async def test_a_record_that_cannot_be_read_has_none(serve_traces, tmp_path):
    datasette = serve_traces(list(expecting("240")))
    (tmp_path / "run" / TRACES).unlink()
    assert "Expected answer" not in await read(datasette, 1, status=404)
    assert 'class="expected' not in prompt(await get(datasette, f"{BASE}/group/1"))


@pytest.mark.parametrize("text", PAYLOADS)
async def test_it_is_only_text(serve_traces, text):
    datasette = serve_traces(list(expecting(text, text, key="k")))
    shown = [facts(await read(datasette, 2)), prompt(await get(datasette, f"{BASE}/group/1"))]
    for page in shown:
        [answer] = re.findall('<div class="text" data-copy="expected answer"[^>]*>(.*?)</div>', page, re.DOTALL)
        # What is no character at all, half of a pair, is a sign that says so.
        assert visible_text(answer) == text.replace("\ud800", "\ufffd")
        assert not re.search('<(?!span class="invisible" title="[^"<>]*">|/span>)', answer)


@pytest.mark.parametrize("page", ["group/1", "prompt/1/1"])
@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (("240", "240"), "expected answer 240"),
        ((None, None), "How many?"),
        (("240", "220"), "The trajectories expect different answers; the page of each has its own."),
    ],
    ids=["same", "none", "different"],
)
async def test_those_of_a_prompt_have_it_once(serve_traces, page, answers, said):
    shown = await get(serve_traces(list(expecting(*answers, key="k"))), f"{BASE}/{page}")
    assert words(prompt(shown)).endswith(said)
    assert len(re.findall("expected answer</b>", shown)) == (said == "expected answer 240")


async def test_it_is_compared(serve_traces):
    datasette = serve_traces(list(expecting("240", "240", None, LONG)))
    same, one, two = [words(await get(datasette, f"{BASE}/compare?a=1&b={b}")) for b in (2, 3, 4)]
    assert "the same: expected answer: 240 ·" in same
    assert " expected answer 240 not recorded " in one
    assert re.search(r" expected answer 240 (word )+word… ", two)
    assert "expected answer" not in words(await get(datasette, f"{BASE}/compare?a=3&b=3"))


async def test_json_has_it_as_recorded(serve_traces):
    datasette = serve_traces(list(expecting(["a", 1], None)))
    found = [json.loads(await get(datasette, f"{BASE}/trajectory/{number}.json")) for number in (1, 2)]
    assert [one["metadata"]["truth"] for one in found] == [["a", 1], None]


async def test_of_several_texts_none_is_chosen():
    assert expected_of_all(["a", None]).differs
    assert not expected_of_all([]).differs
