"""Datasette's pages of the tables of an index: rows of one line, what decides in sight, and no text out of reach."""

from __future__ import annotations

import pytest

TABLES = ["trajectories", "prompts", "prompt_groups", "steps", "shards", "runs", "annotations", "prompt_pass_rates"]
HEIGHTS = "[...document.querySelectorAll('.rows-and-columns tbody tr')].map((row) => row.offsetHeight)"
SIDEWAYS = "document.documentElement.scrollWidth - innerWidth"
RIGHT = "(column) => document.querySelector(`th[data-column=${column}]`).getBoundingClientRect().right"


@pytest.mark.parametrize("table", TABLES)
def test_a_row_is_a_line_of_a_wide_window_and_a_card_of_a_narrow_one(open_page, table):
    page = open_page(f"/runs/{table}?_size=20")
    heights = page.evaluate(HEIGHTS)
    assert heights
    assert max(heights) < 36  # 25 rows in a window of 900
    page.set_viewport_size({"width": 400, "height": 900})
    assert page.evaluate(SIDEWAYS) <= 0
    assert max(page.evaluate(HEIGHTS)) < 900
    assert max(page.evaluate(HEIGHTS)) > 36


def test_what_decides_is_seen_without_scrolling(open_page):
    page = open_page("/runs/trajectories?_size=20")
    for column in ("step", "split", "env", "preview", "success", "reward", "turns"):
        assert page.evaluate(RIGHT, column) <= 1280, column


def test_a_cell_that_is_cut_says_all_of_its_text_when_pointed_at(open_page):
    page = open_page("/runs/trajectories?_size=20")
    row = page.locator(".rows-and-columns tbody tr").first
    preview, split = row.locator("td.col-preview"), row.locator("td.col-split")
    for cell in (preview, split):
        cell.hover()
    whole = preview.inner_text()
    assert len(whole) > 60
    assert preview.get_attribute("title") == whole
    assert split.get_attribute("title") is None


SEEN = "[...document.querySelectorAll('dl.column-descriptions dt')].filter((name) => name.checkVisibility()).length"


@pytest.mark.parametrize("width", [700, 1280])
def test_descriptions_of_columns_end_with_how_many_more_there_are_and_open_them(open_page, width):
    page = open_page("/runs/trajectories?_size=1", width)
    more, names = page.locator("details.more-columns summary"), page.locator("dl.column-descriptions dt")
    count = names.count()
    assert count > 40
    assert (page.evaluate(SEEN), more.inner_text()) == (8, f"{count - 8} more columns")
    assert names.all_inner_texts()[:8] == ["id", "run_id", "step", "split", "env", "preview", "success", "reward"]
    assert page.locator("dl.column-descriptions").first.bounding_box()["height"] < 300
    more.click()
    assert page.evaluate(SEEN) == count
    assert page.evaluate("[...document.querySelectorAll('dl')].every((one) => one.scrollHeight <= one.clientHeight)")
    assert page.evaluate(SIDEWAYS) <= 0


@pytest.mark.parametrize(
    ("path", "script"), [("/runs/fields", True), ("/runs/trajectories", False)], ids=["few", "no script"]
)
def test_few_descriptions_are_all_shown_and_many_where_no_script_folds_them(open_page, path, script):
    page = open_page(path, script=script)
    assert page.locator("dl.column-descriptions dt").count() > 4
    assert page.locator("details.more-columns").count() == 0
    height = "(list) => list.scrollHeight <= list.clientHeight"
    if script:
        assert page.locator("dl.column-descriptions").evaluate(height)
    else:
        assert page.locator("dl.column-descriptions").bounding_box()["height"] > 400
