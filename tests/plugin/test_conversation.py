"""From messages to turns: calls beside their results, reasoning apart, images from inside the record only."""

from __future__ import annotations

import pytest

from datasette_rltracer import conversation
from datasette_rltracer.conversation import paired_results, read_page
from datasette_rltracer.parts import IMAGE_LIMIT, MOST_PARTS, read_parts
from datasette_rltracer.raw_text import read_raw_page
from rltracer_sqlite.messages import normal_message
from rltracer_sqlite.thoughts import split_thoughts

from .conftest import PIXEL, tool_conversation


def call(identity, name="shell", arguments="{}"):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*identities):
    return {"role": "assistant", "content": None, "tool_calls": [call(identity) for identity in identities]}


def result(identity, text="done"):
    return {"role": "tool", "content": text, "tool_call_id": identity}


@pytest.mark.parametrize(
    ("messages", "pairs"),
    [
        ([assistant("a", "b"), result("b"), result("a")], {(0, 0): 2, (0, 1): 1}),
        ([assistant("a"), result("a"), assistant("a"), result("a")], {(0, 0): 1, (2, 0): 3}),
        ([assistant(None, None), result(None), result(None)], {(0, 0): 1, (0, 1): 2}),
        ([assistant("a"), result("z")], {}),
        ([result("a"), assistant("a")], {}),
        ([assistant("a"), result("a"), result("a")], {(0, 0): 1}),
    ],
)
def test_results_are_paired_with_their_calls(messages, pairs):
    assert paired_results(messages) == pairs


def test_every_message_is_on_the_page_exactly_once():
    messages = [normal_message(one) for one in tool_conversation()]
    turns = read_page(messages).turns
    inside = [one.result.number for turn in turns for one in turn.calls if one.result]
    assert sorted([turn.number for turn in turns] + inside) == list(range(len(messages)))


def test_calls_of_a_tool_result_keep_their_own_results():
    nested = {**result("a"), "tool_calls": [call("n")]}
    assert [turn.number for turn in read_page([assistant("a"), nested, result("n")]).turns] == [0, 2]


def test_reasoning_is_apart_from_the_text():
    [turn] = read_page([{"role": "assistant", "content": "4", "reasoning_content": "2 + 2"}]).turns
    assert [text.text for text in turn.reasoning] == ["2 + 2"]
    assert [part.text.text for part in turn.parts] == ["4"]


@pytest.mark.parametrize(
    ("text", "thoughts", "rest"),
    [
        ("<think>a</think>\n\nb", ["<think>a</think>"], "b"),
        ("a</think>b", ["a</think>"], "b"),
        ("<think>never closed", [], "<think>never closed"),
        ("say <think> and </think>", [], "say <think> and </think>"),
        ("plain", [], "plain"),
    ],
)
def test_think_tags_in_the_text(text, thoughts, rest):
    assert split_thoughts(text) == (thoughts, rest)


def image(url):
    return [{"type": "image_url", "image_url": {"url": url}}]


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_images_inside_the_record_are_shown(kind):
    url = PIXEL.replace("png", kind)
    assert read_parts(image(url), 100).parts[0].image == url
    assert read_parts([{"type": "input_image", "image_url": url}], 100).parts[0].image == url


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/x.png",
        "//example.org/x.png",
        "/etc/passwd",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:image/svg+xml;base64,PHN2Zz4=",
        "data:text/html;base64,PHN2Zz4=",
        'data:image/png;base64,AAAA" onerror="alert(1)',
        "data:image/png,AAAA",
        " data:image/png;base64,AAAA",
        "DATA:image/png;base64,AAAA",
    ],
)
def test_any_other_image_address_is_text(url):
    [part] = read_parts(image(url), 1000).parts
    assert part.image is None
    assert part.text.text == url
    assert "not loaded" in part.label


def test_images_beyond_the_limit_are_not_shown():
    parts = read_parts(image(PIXEL[:22] + "A" * (IMAGE_LIMIT - 40)) * 2, 100).parts
    assert [part.image is not None for part in parts] == [True, False]
    assert "too large" in parts[1].label


@pytest.mark.parametrize("content", [7, {"a": 1}, [None], [{"type": "audio", "data": "x"}], [["nested"]], True])
def test_unknown_content_is_shown_as_json(content):
    [part] = read_parts(content, 1000).parts
    assert part.label
    assert part.text.characters


def test_no_content_has_no_parts():
    assert read_parts(None, 10).parts == read_parts("", 10).parts == read_parts([], 10).parts == []


def test_parts_and_calls_beyond_the_limit_are_counted():
    parts = [{"type": "text", "text": "x"}] * (MOST_PARTS + 3)
    message = {"role": "assistant", "content": parts, "tool_calls": [call(str(n)) for n in range(201)]}
    [turn] = read_page([message]).turns
    assert (len(turn.parts), len(turn.calls)) == (MOST_PARTS, conversation.MOST_CALLS)
    assert turn.left_out == "3 more parts and 1 more tool call not shown here; the raw record has all"


def test_a_long_text_is_cut_unless_it_is_asked_for_in_full():
    message = {"role": "user", "content": "x" * (conversation.TEXT_LIMIT + 1)}
    [turn] = read_page([message]).turns
    assert turn.parts[0].text.is_cut
    [turn] = read_page([message], full=0).turns
    assert not turn.parts[0].text.is_cut


@pytest.mark.parametrize("read", [read_page, read_raw_page])
def test_many_messages_come_in_pages_that_leave_none_out(read):
    messages = [{"role": "user", "content": str(n)} for n in range(450)]
    seen, start = [], 0
    while start is not None:
        page = read(messages, start)
        seen += [turn.number for turn in page.turns]
        start = page.following
    assert seen == list(range(450))
    assert (read(messages, 200).preceding, read(messages, 200).before) == (0, 199)
    assert read(messages, 10_000).turns == []


def test_a_page_of_long_messages_ends_early():
    messages = [{"role": "user", "content": "x" * conversation.TEXT_LIMIT}] * 100
    page = read_page(messages)
    assert len(page.turns) == conversation.PAGE_LIMIT // conversation.TEXT_LIMIT + 1
    assert page.following == len(page.turns)


@pytest.mark.parametrize("length", [10, 3_000, conversation.TEXT_LIMIT])
def test_the_page_before_reaches_this_one(length):
    messages = [{"role": "assistant", "content": [{"type": "text", "text": "x" * length}] * 9} for _ in range(250)]
    pages = [read_page(messages)]
    while pages[-1].following is not None:
        pages.append(read_page(messages, pages[-1].following))
    for page, earlier in zip(pages[1:], pages, strict=False):
        assert page.preceding <= earlier.start
        assert read_page(messages, page.preceding).turns[-1].number >= page.before == page.start - 1


def test_what_else_is_recorded_is_kept():
    [turn] = read_page([{"role": "assistant", "content": "a", "provider_state": [{"k": "v"}]}]).turns
    assert '"provider_state"' in turn.extra.text


@pytest.mark.parametrize(("role", "kind"), [("developer", "system"), ("tool", "tool"), ("x y", "other"), ("", "other")])
def test_only_known_roles_decide_the_look(role, kind):
    assert read_page([{"role": role, "content": "a"}]).turns[0].kind == kind
