"""Content that means harm, in a real browser: no dialog, no request off the machine, no error (see `open_page`)."""

from __future__ import annotations

import pytest

from tests.indexing import rows, value

from .conftest import HARM

BASE = "/-/rltracer/hostile"
LISTS = [
    "/", "/run/1", "/run/1/charts", "/step/1/1", "/group/1", "/prompt/1/1", "/search?q=alert", "/export?_preview=sft",
    f"/search?q=img&success={HARM}&split={HARM}", f"/step/1/1?env={HARM}", "/compare?a=1&b=2",
]  # fmt: skip
ASK = "select id from trajectories where uid <> 'messages'"


def is_inert(page):
    """Open what is folded and press a key; a complaint of the browser fails the test, see `open_page`."""
    page.locator(".reading.has-keys").wait_for()
    page.keyboard.press("r")
    page.evaluate("document.querySelectorAll('.reading details').forEach((one) => { one.open = true; })")
    assert page.locator("img:not(.picture)").count() == 0
    assert page.evaluate("document.querySelectorAll('[onerror], [onload], iframe, object, embed').length") == 0


@pytest.mark.parametrize("path", LISTS)
def test_a_page_of_lists_stays_inert(open_page, path):
    is_inert(open_page(f"{BASE}{path}"))


def test_a_refusal_stays_inert(browser, server):
    context = browser.new_context()  # not `open_page`: the browser notes the answer's status on its console
    page = context.new_page()
    assert page.goto(f"{server}{BASE}/step/1/1?_sort={HARM}").status == 400
    assert HARM in page.locator("body").inner_text()
    assert page.locator("img:not(.picture)").count() == 0
    context.close()


@pytest.mark.parametrize("view", ["", "?view=raw", "?view=tokens", "?find=alert"])
def test_a_trajectory_stays_inert(open_page, folder, view):
    (first,), *others = rows(folder / "hostile.sqlite", ASK)
    page = open_page(f"{BASE}/trajectory/{first}{view}")
    is_inert(page)
    for (number,) in others:
        page.goto(f"{page.url.split('/-/')[0]}{BASE}/trajectory/{number}{view}")
        is_inert(page)


def test_names_of_files_and_runs_are_only_text(open_page):
    page = open_page(f"{BASE}/run/1")
    assert page.locator("h1").inner_text() == HARM
    page.goto(page.url.replace("/run/1", "/trajectory/1"))
    assert HARM in page.locator(".crumbs").inner_text()


def test_a_hundred_thousand_messages_come_in_pages(open_page, folder):
    number = value(folder / "hostile.sqlite", "select id from trajectories where uid = 'messages'")
    page = open_page(f"{BASE}/trajectory/{number}?message=99999")
    is_inert(page)
    assert "messages 100,000 – 100,000 of 100,000" in page.locator(".views").inner_text()
    assert page.locator(".message .text").all_inner_texts() == ["99999"]


def test_a_line_of_a_million_characters_stays_in_the_window(open_page, folder):
    number = value(folder / "hostile.sqlite", "select id from trajectories where uid = 'line'")
    page = open_page(f"{BASE}/trajectory/{number}?full=0", 360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.querySelector('.message .text').textContent.length") == 1_000_000
