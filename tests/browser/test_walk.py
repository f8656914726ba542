"""A way through all pages, from the runs to an export: with the pointer, with keys alone, and without JavaScript."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest


def on(page, pattern):
    page.wait_for_url(re.compile(pattern))


def follow(page, name, pattern, exact=True):
    page.get_by_role("link", name=name, exact=exact).first.click()
    on(page, pattern)


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_from_all_runs_to_an_export(open_page, places, script):
    page = open_page(places["overview"], script=script)
    follow(page, "small", r"/run/\d+$")
    page.locator("table.steps [data-label=step]").get_by_role("link", name="1", exact=True).click()
    on(page, r"/step/\d+/1")
    page.get_by_label("signal").select_option("0")
    page.get_by_role("button", name="Show").click()
    on(page, r"zero_variance=0")
    follow(page, "Pick one.", r"/group/\d+")
    page.locator("table.group a.cell").first.click()
    on(page, r"/trajectory/\d+")
    follow(page, "branch 2", r"branch=2")
    assert page.locator(".message.assistant .text").all_inner_texts() == ["right"]
    assert page.get_by_text("nothing sampled").is_visible()
    look_through_the_lens(page)
    compare_and_search(page)
    download_what_was_found(page)


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_the_hardest_prompt_has_its_best_beside_its_worst(open_page, places, script):
    page = open_page(places["run"], script=script)
    page.locator("[data-part=hardest] td a").first.click()
    on(page, r"/prompt/\d+/\d+\?split=train&env=")
    figures = page.locator("[data-part=ends] tbody tr")
    assert [one.split()[0] for one in figures.all_inner_texts()] == ["best", "worst"]
    if script:
        press(page, "c", r"/compare\?a=\d+&b=\d+")
    else:
        follow(page, "compare the best with the worst", r"/compare\?a=\d+&b=\d+")
    assert "Here they part" in page.locator("main").inner_text()


def look_through_the_lens(page):
    follow(page, "tokens", r"view=tokens")
    assert "branch=2" in page.url
    follow(page, "mask", r"lens=mask")
    assert page.locator("div.tokens > .k").count() == 23 + 19  # of the two messages
    follow(page, "conversation", r"/trajectory/\d+\?(?!.*tokens)")


def compare_and_search(page):
    follow(page, "compare with the worst", r"/compare\?a=\d+&b=\d+")
    assert "Here they part, in message 2." in page.locator("main").inner_text()
    follow(page, "swap sides", r"/compare")
    follow(page, "search", r"/search\?run_id=\d+$")
    page.get_by_label("Search for").fill('"many gaskets"')
    page.get_by_role("button", name="Search").click()
    on(page, r"q=%22many\+gaskets%22")
    follow(page, "How many gaskets?", r"/trajectory/\d+", exact=False)
    assert page.locator("mark").first.is_visible()
    page.get_by_label("find").fill("stock")
    page.get_by_label("find").press("Enter")
    on(page, r"find=stock")
    assert page.locator(".found").inner_text().startswith("2 matches in 2 of 7 messages")
    page.go_back()
    page.go_back()


def download_what_was_found(page):
    follow(page, "export these", r"/export\?.*_search")
    page.get_by_role("button", name="Preview SFT conversations").click()
    on(page, r"_preview=sft")
    assert "1 trajectory of 1 prompt" in page.locator(".list-head").first.inner_text()
    assert "prompt group" not in page.locator(".list-head").first.inner_text()
    check_download(page, lambda: page.get_by_role("button", name="Download SFT conversations").click())


def check_download(page, press):
    with page.expect_download() as waiting:
        press()
    [row] = map(json.loads, Path(waiting.value.path()).read_text(encoding="utf-8").splitlines())
    assert row["messages"][-1]["content"] == "14"


def tab_to(page, name, limit=80):
    """Press the tabulator until the focus is on what has this name."""
    for _ in range(limit):
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.innerText || document.activeElement.name")
        if focused and " ".join(focused.split()) == name:
            return
    raise AssertionError(f"no way to {name!r} with the tabulator")


def press(page, key, pattern):
    with page.expect_navigation(url=re.compile(pattern)):
        page.keyboard.press(key)


def test_with_keys_alone(open_page, places):
    page = open_page(places["overview"])
    tab_to(page, "small")
    press(page, "Enter", r"/run/\d+$")
    tab_to(page, "1")
    press(page, "Enter", r"/step/\d+/1")
    page.keyboard.press("j")
    press(page, "Enter", r"/group/\d+")
    press(page, "n", r"/trajectory/\d+")
    tab_to(page, "branch 2")
    press(page, "Enter", r"branch=2")
    press(page, "t", r"view=tokens")
    press(page, "t", r"branch=2(?!.*tokens)")
    press(page, "c", r"/compare\?")
    press(page, "g", r"/group/\d+")
    press(page, "c", r"/compare\?")
    tab_to(page, "search")
    press(page, "Enter", r"/search\?run_id=\d+$")
    page.locator("input[name=q]:focus").wait_for()  # the browser gives the focus when it has drawn the page
    page.keyboard.type('"many gaskets"')
    press(page, "Enter", r"q=")
    page.keyboard.press("j")
    press(page, "Enter", r"/trajectory/\d+")
    page.keyboard.press("/")
    page.keyboard.press("Control+a")
    page.keyboard.type("stock")
    press(page, "Enter", r"find=stock")
    page.go_back()  # the key for this is the browser's, and does nothing in one without a window
    page.go_back()
    tab_to(page, "export these")
    press(page, "Enter", r"/export\?")
    tab_to(page, "Download SFT conversations")
    check_download(page, lambda: page.keyboard.press("Enter"))


def test_groups_are_read_one_after_the_other_with_keys(open_page, places):
    page = open_page(places["small group"])
    first = page.url
    for _ in range(3):
        press(page, "n", r"/trajectory/\d+")
    press(page, "n", r"/group/\d+")  # the group has three trajectories
    assert page.url != first
    press(page, "[", r"/group/\d+")
    press(page, "n", r"/trajectory/\d+")
    press(page, "g", r"/group/\d+")
    press(page, "g", r"/step/\d+/1")


def test_previous_and_next_stay_inside_a_filter(open_page, places):
    page = open_page(f"{places['small group']}?run_id=2&success__notnull=1")
    press(page, "n", r"/trajectory/\d+\?.*success__notnull=1")
    press(page, "n", r"/trajectory/\d+\?.*success__notnull=1")
    assert "2 of 2 where success is not null" in page.locator(".strip").inner_text()
    assert page.get_by_role("link", name="next", exact=True).count() == 0


def test_any_of_the_group_can_be_set_beside_another(open_page, places):
    page = open_page(places["compare"])
    sides = page.locator(".facts-beside th[scope=col] a")
    left, right = sides.all_inner_texts()
    with page.expect_navigation():
        page.locator(".strip a.cell:not([aria-current])").first.click()
    kept, other = sides.all_inner_texts()
    assert kept == left
    assert other not in (left, right)
    assert page.locator(".strip a.cell[aria-current] + .side").all_inner_texts() in (
        ["left", "right"],
        ["right", "left"],
    )
    with page.expect_navigation():
        page.locator(".strip a.cell[aria-current]", has=page.locator("xpath=following-sibling::*[1][.='left']")).click()
    assert sides.all_inner_texts() == [other, left]


def test_long_trajectories_are_read_page_by_page(open_page, places):
    page = open_page(places["long"], script=False)
    seen = []
    while True:
        seen += page.locator(".message .text").all_inner_texts()
        later = page.locator('.pager a[rel="next"]')
        if not later.count():
            break
        with page.expect_navigation():  # a click waits until the page has begun, not until all of it is there
            later.click()
    assert seen == [f"line {number}." for number in range(450)]


def test_a_permanent_link_leads_to_its_message(open_page, places):
    page = open_page(places["later"])
    page.get_by_role("link", name="#301", exact=True).click()
    on(page, r"message=300#m300")
    assert page.locator("#m300").is_visible()
    assert page.evaluate("document.querySelector(':target').id") == "m300"


def test_all_of_a_long_text_can_be_shown(open_page, places):
    page = open_page(places["thought"])
    page.get_by_role("link", name="show all 30,0").click()
    on(page, "full=1")
    assert page.get_by_text("characters shown").count() == 0
