"""Content that means harm, in a real browser: no dialog, no request off the machine, no error (see `open_page`)."""

from __future__ import annotations

import pytest

from tests.indexing import value

BASE = "/-/rltracer/hostile"
PAGES = ["/", "/run/1", "/step/1/1", *(f"/group/{n}" for n in (1, 2)), *(f"/trajectory/{n}" for n in range(1, 12))]


@pytest.mark.parametrize("page", [*PAGES, *(f"{page}?view=raw" for page in PAGES if "trajectory" in page)])
def test_a_page_stays_inert(open_page, page):
    opened = open_page(f"{BASE}{page}")
    opened.locator(".reading.has-keys").wait_for()
    opened.keyboard.press("r")
    for summary in opened.locator("main summary").all()[:20]:
        summary.click()
    assert opened.locator("img:not(.picture)").count() == 0


def test_a_hundred_thousand_messages_come_in_pages(open_page, folder):
    number = value(folder / "hostile.sqlite", "select id from trajectories where uid = 'messages'")
    page = open_page(f"{BASE}/trajectory/{number}?message=99999")
    assert "messages 100,000 – 100,000 of 100,000" in page.locator(".views").inner_text()


def test_a_line_of_a_million_characters_stays_in_the_window(open_page, folder):
    number = value(folder / "hostile.sqlite", "select id from trajectories where uid = 'line'")
    page = open_page(f"{BASE}/trajectory/{number}?full=0", 360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
