"""Every page at every width in both themes: nothing sticks out, and axe-core finds no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

AXE = Path(__file__).parent / "axe.min.js"
PAGES = [
    "overview", "run", "small run", "charts", "step", "filtered step", "group", "small group", "tools", "branched",
    "thought", "failed", "counted", "raw", "found", "tokens", "compare", "search", "empty search", "export", "browse",
    "browse run", "missing",
]  # fmt: skip
WIDTHS = (360, 768, 1280, 2560)
# Datasette's own menu and footer are not ours to judge, nor is what Vega draws beside a chart's description.
RUN = """
async () => (await axe.run(
    {include: [".reading", ".crumbs", ".beside-crumbs"], exclude: [".drawing svg"]},
    {resultTypes: ["violations"]},
)).violations.map((found) => [found.impact, found.id, found.nodes.slice(0, 3).map((node) => node.html)])
"""


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_fault_and_nothing_sticks_out(open_page, places, name):
    page = open_page(places[name])
    for figure in page.locator("figure.rltracer-chart").all() if name == "charts" else ():
        figure.scroll_into_view_if_needed()
        figure.get_by_text("Table of").wait_for()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for theme, width in (("light", 1280), ("dark", 360)):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(RUN) == [], (theme, width)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CLIPPED) == [], width


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


@pytest.mark.parametrize("name", ["overview", "run", "step", "group"])
def test_no_table_has_to_be_scrolled_in_a_window_of_1100(open_page, places, name):
    page = open_page(places[name], width=1100)
    tables = "[...document.querySelectorAll('.reading .scroll')].map((one) => one.scrollWidth - one.clientWidth)"
    wider = page.evaluate(tables)
    assert wider
    assert max(wider) <= 0


@pytest.mark.parametrize("name", ["thought", "counted", "raw"])
def test_lines_of_prose_can_be_read(open_page, places, name):
    page = open_page(places[name])
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        widest = page.evaluate(
            "Math.max(0, ...[...document.querySelectorAll('.text:not(.output)')].map((text) => text.clientWidth))"
        )
        assert widest <= 46 * 16 + 1


SMALL = """() => {
const pressed = ".reading :is(a.cell, button, select, input:not([type=hidden], .unseen))";
return [...document.querySelectorAll(pressed)].filter((one) => {
    const {width, height} = one.getBoundingClientRect();
    return width && (width < 12 || height < 12 || (one.matches("input[type=search], input[type=text]") && width < 40));
}).map((one) => one.outerHTML.slice(0, 120));
}"""


@pytest.mark.parametrize("name", ["step", "group", "counted", "compare", "search", "export", "browse"])
def test_what_can_be_pressed_is_large_enough_on_a_small_screen(open_page, places, name):
    assert open_page(places[name], 360).evaluate(SMALL) == []
