"""A way through the pages, from all runs to a branch: with the pointer, with keys alone, and without JavaScript."""

from __future__ import annotations

import re

import pytest


def on(page, pattern):
    page.wait_for_url(re.compile(pattern))


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_from_all_runs_to_a_branch(open_page, places, script):
    page = open_page(places["overview"], script=script)
    page.get_by_role("link", name="small", exact=True).first.click()
    on(page, r"/run/\d+$")
    page.locator("table.steps").get_by_role("link", name="1", exact=True).click()
    on(page, r"/step/\d+/1")
    page.get_by_role("link", name="Pick one.").click()
    on(page, r"/group/\d+")
    page.locator("table.group a.cell").first.click()
    on(page, r"/trajectory/\d+")
    page.get_by_role("link", name="branch 2").click()
    on(page, r"branch=2")
    assert page.locator(".message.assistant .text").all_inner_texts() == ["right"]
    assert page.get_by_text("not trained").is_visible()


def tab_to(page, name, limit=80):
    for _ in range(limit):
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.innerText")
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
    press(page, "n", r"/trajectory/(?!.*branch)")
    press(page, "g", r"/group/\d+")
    first = page.url
    press(page, "]", r"/group/\d+")
    assert page.url != first
    press(page, "[", r"/group/\d+")
    assert page.url == first
    press(page, "g", r"/step/\d+/1")


def test_previous_and_next_stay_inside_a_filter(open_page, places):
    page = open_page(f"{places['small group']}?run_id=2&success__notnull=1")
    press(page, "n", r"/trajectory/\d+\?.*success__notnull=1")
    press(page, "n", r"/trajectory/\d+\?.*success__notnull=1")
    assert "2 of 2 where success is not null" in page.locator(".strip").inner_text()
    assert page.get_by_role("link", name="next", exact=True).count() == 0


def test_long_trajectories_are_read_page_by_page(open_page, places):
    page = open_page(places["long"], script=False)
    seen = []
    while True:
        seen += page.locator(".message .text").all_inner_texts()
        later = page.locator('.pager a[rel="next"]')
        if not later.count():
            break
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
