"""The panels beside a conversation: all of them can be reached in a window of any height, and are seen to go on."""

from __future__ import annotations

import pytest

TEXTLESS = ".facts * { color: transparent !important; text-decoration: none !important; border-color: transparent; }"
HEIGHTS = (400, 800, 1100)


def scrolled(page, panel, place):
    """Scroll a panel to its beginning (0) or its end, as the wheel does."""
    panel.hover()
    page.mouse.wheel(0, 4000 if place else -4000)
    end = "(node, place) => Math.abs(node.scrollTop - place * (node.scrollHeight - node.clientHeight)) < 2"
    page.wait_for_function(f"([node, place]) => ({end})(node, place)", arg=[panel.element_handle(), place])


@pytest.mark.parametrize("width", [1000, 1280])
def test_all_facts_can_be_reached_from_the_middle_of_a_conversation(open_page, places, width):
    page = open_page(places["long"])
    panel = page.locator(".facts")
    for height in HEIGHTS:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("scrollTo(0, 2000)")
        for place, shown in ((1, "index row"), (0, "Expected answer")):
            scrolled(page, panel, place)
            box = panel.get_by_text(shown).bounding_box()
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= height


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_edge_behind_which_a_panel_goes_on_is_shaded(open_page, places, theme):
    page = open_page(places["long"])
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": 1280, "height": 400})
    page.add_style_tag(content=TEXTLESS)
    page.evaluate("scrollTo(0, 2000)")
    panel, strips = page.locator(".facts"), {}
    for place in (1, 0):
        scrolled(page, panel, place)
        x = panel.bounding_box()["x"]
        for edge, y in (("top", 0), ("bottom", 396)):
            strips[place, edge] = page.screenshot(clip={"x": x, "y": y, "width": 150, "height": 4})
    plain = strips[0, "top"]
    assert {key for key, strip in strips.items() if strip != plain} == {(0, "bottom"), (1, "top")}
