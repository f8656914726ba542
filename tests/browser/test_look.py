"""Every page at every width in both themes: axe-core finds no fault, and nothing sticks out or is too small or wide."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasette.app import Datasette
from datasette.database import Database

from tests.index_factory import make_index
from tests.serving import serving, windows

AXE = Path(__file__).parent / "axe.min.js"
PAGES = [
    "overview", "run", "small run", "charts", "chart alone", "step", "filtered step", "group", "small group", "prompt",
    "unscored prompt", "tools", "branched", "thought", "failed", "counted", "raw", "found", "tokens", "compare",
    "search", "empty search", "export", "browse", "browse run", "missing",
]  # fmt: skip
OF_TABLES = ("overview", "run", "step", "group", "prompt")
OF_PROSE = ("thought", "counted", "raw")
PRESSED = ("step", "group", "counted", "compare", "search", "export", "browse")
WIDTHS = (360, 768, 1280, 2560)
WITHOUT_SCROLLING = (700, 1100, 1280)  # windows in which no table has to be scrolled
# Datasette's own menu and footer are not ours to judge, nor is what Vega draws beside a chart's description.
RUN = """
async () => (await axe.run(
    {include: [".reading", ".crumbs", ".beside-crumbs"], exclude: [".drawing svg"]},
    {resultTypes: ["violations"]},
)).violations.map((found) => [found.impact, found.id, found.nodes.slice(0, 3).map((node) => node.html)])
"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_and_used_at_every_width(open_page, places, name):
    page = open_page(places[name])
    for figure in page.locator("figure.rltracer-chart").all() if name == "charts" else ():
        figure.scroll_into_view_if_needed()
        figure.get_by_text("Table of").wait_for()
    check_with_axe(page)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CLIPPED) == [], width
        if name in OF_PROSE:
            assert page.evaluate(WIDEST) <= 46 * 16 + 1, width
        if name in PRESSED and width == min(WIDTHS):
            assert page.evaluate(SMALL) == []
    check_tables(page, name in OF_TABLES)


def check_with_axe(page):
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for theme, width in (("light", 1280), ("dark", 360)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(RUN) == [], (theme, width)


def check_tables(page, has_some):
    tables = "[...document.querySelectorAll('.reading .scroll')].map((one) => one.scrollWidth - one.clientWidth)"
    for width in WITHOUT_SCROLLING:
        page.set_viewport_size({"width": width, "height": 900})
        wider = page.evaluate(tables)
        assert wider or not has_some
        assert max(wider, default=0) <= 0, width


# What a form holds stands inside the window and its field inside its label; a label does not lie over the next.
CLIPPED = """
[...document.querySelectorAll(".reading form :is(label, input, select, button)")].filter((one) => {
    if (one.closest(".unseen") || one.type === "hidden") return false;
    const {left, right, width} = one.getBoundingClientRect();
    const over = [...one.parentElement.children].some((other) => {
        if (other === one || other.matches(".unseen, input[type=hidden], br")) return false;
        const [mine, its] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
        return its.width && Math.min(mine.right, its.right) - Math.max(mine.left, its.left) > 1
            && Math.min(mine.bottom, its.bottom) - Math.max(mine.top, its.top) > 1;
    });
    const inside = one.parentElement.matches("label") && right > one.parentElement.getBoundingClientRect().right + 1;
    return width && (left < 0 || right > innerWidth || over || inside);
}).map((one) => one.outerHTML.slice(0, 120))
"""
# How wide the lines of prose are.
WIDEST = "Math.max(0, ...[...document.querySelectorAll('.text:not(.output)')].map((text) => text.clientWidth))"
# What can be pressed and is too small for it on a small screen.
SMALL = """() => {
const pressed = ".reading :is(a.cell, button, select, input:not([type=hidden], .unseen))";
return [...document.querySelectorAll(pressed)].filter((one) => {
    const {width, height} = one.getBoundingClientRect();
    return width && (width < 12 || height < 12 || (one.matches("input[type=search], input[type=text]") && width < 40));
}).map((one) => one.outerHTML.slice(0, 120));
}"""


def test_a_command_with_a_long_name_of_a_file_stays_in_the_window(browser, tmp_path):
    path = make_index(tmp_path / f"{'n' * 100}.sqlite", [{"reward": None}])
    datasette = Datasette([])
    datasette.add_database(Database(datasette, path=str(path)), name="x")
    with serving(datasette.app()) as address, windows(browser, viewport={"width": 360, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{address}/-/rltracer/x/run/1")
        assert page.locator("#prompts code").inner_text().startswith("rltracer success nnn")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
