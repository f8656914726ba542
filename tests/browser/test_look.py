"""Every page at every width in both themes: nothing sticks out, and axe-core finds no serious fault."""

from __future__ import annotations

from pathlib import Path

import pytest

AXE = Path(__file__).parent / "axe.min.js"
PAGES = [
    "overview", "run", "small run", "step", "filtered step", "group", "small group", "tools", "branched", "thought",
    "failed", "counted", "raw", "later",
]  # fmt: skip
# Datasette's own header, menu and footer are not ours to judge; neither is a chart, which has its own tests.
RUN = """
async () => (await axe.run(
    {include: [".reading"], exclude: [".rltracer-charts"]},
    {resultTypes: ["violations"]},
)).violations.map((found) => [found.impact, found.id, found.nodes.slice(0, 3).map((node) => node.html)])
"""


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_fault(open_page, places, name):
    page = open_page(places[name])
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(RUN) == [], (theme, width)


@pytest.mark.parametrize("name", PAGES)
def test_nothing_sticks_out_of_the_window(open_page, places, name):
    page = open_page(places[name])
    for width in (360, 768, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["thought", "counted", "raw"])
def test_lines_of_prose_can_be_read(open_page, places, name):
    page = open_page(places[name])
    for width in (360, 1280, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        widest = page.evaluate(
            "Math.max(0, ...[...document.querySelectorAll('.text:not(.output)')].map((text) => text.clientWidth))"
        )
        assert widest <= 46 * 16 + 1


@pytest.mark.parametrize("name", PAGES)
def test_what_can_be_pressed_is_large_enough_on_a_small_screen(open_page, places, name):
    page = open_page(places[name], 360)
    small = page.evaluate(
        "[...document.querySelectorAll('.reading :is(a.cell, button, select)')].filter((one) => {"
        " const {width, height} = one.getBoundingClientRect(); return width && (width < 16 || height < 16);"
        "}).length"
    )
    assert small == 0
