"""What is printed: everything unfolded, in light colours, within the paper, and without what leads elsewhere."""

from __future__ import annotations

import pytest

PAPER = 700  # pixels between the margins of A4
LIGHT = "rgb(28, 32, 36)"  # the ink of the light theme


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_what_is_folded_is_printed_and_folded_again(open_page, places, script):
    page = open_page(places["thought"], script=script)
    reasoning = page.locator("details.reasoning > .text")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert reasoning.is_visible()
    assert page.locator(".facts").is_visible()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert not reasoning.is_visible()


def test_of_the_tools_that_were_offered_the_names_are_printed(open_page, places):
    page = open_page(places["tools"])
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert "offered: bash" in page.locator(".offered > summary").inner_text()
    assert not page.locator(".offered pre").first.is_visible()


LEADING = ".beside-crumbs, .nav-menu, .leads, .strip-links, kbd, .permalink, .find, .choices, .narrowing, button"


@pytest.mark.parametrize(
    "name", ["tools", "later", "raw", "overview", "group", "step", "run", "compare", "tokens", "search"]
)
def test_paper_has_no_navigation_and_nothing_sticks_out(open_page, places, name):
    page = open_page(places[name], PAPER)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == LIGHT
    assert page.locator(f":is({LEADING}):visible").count() == 0
    outside = f"""[...document.querySelectorAll(".reading *")].filter((one) => {{
        const {{right, width}} = one.getBoundingClientRect();
        return width && right > {PAPER} + 1 && !one.closest(".unseen");
    }}).map((one) => one.outerHTML.slice(0, 120))"""
    assert page.evaluate(outside) == []


def test_paper_has_a_chart_alone_without_what_leads_away(open_page, places):
    page = open_page(places["chart alone"], PAPER)
    assert page.locator(".beside-crumbs a").all_inner_texts() == ["search", "export"]
    page.emulate_media(media="print")
    assert page.locator(".beside-crumbs:visible").count() == 0


def test_paper_says_how_much_of_a_long_trajectory_it_has(open_page, places):
    page = open_page(places["later"])
    page.emulate_media(media="print")
    assert page.get_by_text("messages 201 – 400 of 450").is_visible()
