"""What JavaScript adds: moving, folding, copying, the list of keys; and that nothing moves by itself."""

from __future__ import annotations

import re

import pytest


def focused(page):
    return page.evaluate("document.activeElement.id")


def test_messages_are_stepped_through(open_page, places):
    page = open_page(places["counted"])
    steps = []
    for key in "jjjjk":
        page.keyboard.press(key)
        steps.append(focused(page))
    assert steps == ["m0", "m1", "m2", "m3", "m2"]


def test_a_message_that_is_stepped_to_comes_into_view(open_page, places):
    page = open_page(places["long"])
    for _ in range(30):
        page.keyboard.press("j")
    assert page.evaluate("document.activeElement.getBoundingClientRect().top") < 100


def test_the_last_message_is_one_key_away(open_page, places):
    page = open_page(places["counted"])
    page.keyboard.press("e")
    assert page.evaluate("document.querySelector(':target').id") == "m6"
    page.goto(page.url.replace(places["counted"], places["long"]).partition("#")[0])
    with page.expect_navigation(url=re.compile("message=449#m449$")):
        page.keyboard.press("e")
    assert page.locator("#m449").is_visible()


def test_stepping_goes_on_in_the_next_part(open_page, places):
    page = open_page(f"{places['long']}#m199")
    page.locator("#m199").focus()
    with page.expect_navigation(url=re.compile("start=200$")):
        page.keyboard.press("j")
    page.keyboard.press("j")
    assert focused(page) == "m200"
    with page.expect_navigation(url=re.compile("#m199$")):
        page.keyboard.press("k")
    assert page.evaluate("document.querySelector(':target').id") == "m199"
    page.keyboard.press("k")
    assert focused(page) == "m198"


def test_reasoning_is_folded_and_unfolded_and_remembered(open_page, places):
    page = open_page(places["thought"])
    reasoning, opening = page.locator("details.reasoning > .text"), page.locator("details.reasoning .first")
    assert (reasoning.is_visible(), opening.is_visible()) == (False, True)
    page.keyboard.press("r")
    assert (reasoning.is_visible(), opening.is_visible()) == (True, False)
    assert page.locator(".said").inner_text() == "unfolded 1 of 1"
    page.reload()
    assert reasoning.is_visible()
    page.locator("details.reasoning > summary").click()
    page.reload()
    assert not reasoning.is_visible()


def test_the_page_works_where_nothing_can_be_remembered(open_page, places):
    page = open_page(places["thought"])
    page.evaluate("localStorage.setItem('rltracer-folds', '{broken')")
    page.reload()
    page.keyboard.press("r")
    assert page.locator("details.reasoning > .text").is_visible()


def test_the_link_to_a_message_is_copied(open_page, places):
    page = open_page(places["counted"])
    for key in "jjj.":
        page.keyboard.press(key)
    page.get_by_text("copied the link to message #3").wait_for()
    address = page.evaluate("navigator.clipboard.readText()")
    assert address.endswith("/t/small/counted?message=2#m2")
    page.goto(address)
    assert page.locator("#m2").is_visible()


def test_a_text_is_copied_as_recorded(open_page, places):
    page = open_page(f"{places['thought']}?full=1")
    page.locator(".message.assistant .body > .text").hover()
    page.locator(".message.assistant .body > button.copy").click()
    page.get_by_text("copied the text").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("Like this:\n\n```python\nprint('\u202egasket\\r')\n```\n\nand no other way.")
    assert copied.endswith("words. ")


def test_copying_a_cut_text_says_how_much_it_is(open_page, places):
    page = open_page(places["thought"])
    page.locator(".message.assistant .body > .text").hover()
    page.locator(".message.assistant .body > button.copy").click()
    page.get_by_text("copied 20,000 of 30,0").wait_for()


def test_the_record_is_copied(open_page, places, folder):
    page = open_page(places["counted"])
    page.get_by_role("button", name="copy the raw record").focus()
    page.keyboard.press("Enter")
    page.get_by_text("copied the raw record").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").strip() in (
        (folder / "runs/small/rollouts/step_1/train/all/traces.jsonl").read_text().splitlines()
    )


@pytest.mark.parametrize(
    ("name", "keys"),
    [("counted", "jknp]r.?"), ("thought", "jknp]gcr.?"), ("group", "jkn[]gc?"), ("step", "jk[]?"), ("overview", "?")],
)
def test_the_list_of_keys_has_those_that_do_something(open_page, places, name, keys):
    page = open_page(places[name])
    page.keyboard.press("?")
    shown = page.locator("dialog.keys dt").all_inner_texts()
    assert set(keys) <= set(shown)
    assert set(shown) - set(keys) <= set("[]eg/t")
    page.keyboard.press("?")
    assert not page.locator("dialog.keys").is_visible()


def test_keys_are_left_alone_in_a_field(open_page, places):
    page = open_page(places["step"])
    page.locator("select").first.focus()
    page.keyboard.press("]")
    assert page.url.endswith(places["step"])


def test_without_javascript_no_key_is_promised(open_page, places):
    page = open_page(places["thought"], script=False)
    assert page.locator("kbd").count()
    assert not any(key.is_visible() for key in page.locator("kbd").all())
    assert page.locator(".reading button").count() == 0
    page.locator("details.reasoning > summary").click()
    assert page.locator("details.reasoning > .text").is_visible()


SHIFTS = """
() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += entry.value; })
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 300);
})
"""


@pytest.mark.parametrize("name", ["overview", "step", "group", "counted", "thought", "tools", "raw", "compare"])
def test_nothing_moves_by_itself(open_page, places, name):
    page = open_page(places[name], 360)
    assert page.evaluate(SHIFTS) < 0.001
    page.set_viewport_size({"width": 1280, "height": 900})
    page.reload()
    assert page.evaluate(SHIFTS) < 0.001
