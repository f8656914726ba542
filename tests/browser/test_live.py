"""A page that is open while its run grows: it says so, shows what is new when asked, and keeps the reader's place."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasette.app import Datasette

from rltracer_sqlite.index.followed import Followed
from rltracer_sqlite.index.watch import Watch
from rltracer_sqlite.sources import source_for
from tests.layouts import append
from tests.layouts.records import message, trace
from tests.serving import serving, windows

STEP = "rollouts/step_{step}/train/all/traces.jsonl"
NEWS = ".news:not([hidden])"


def write(run: Path, step: int, *questions: str, uid: str = "first") -> None:
    """Write a trajectory for each of these questions."""
    said = [[message("user", question), message("assistant", "yes")] for question in questions]
    rewards = {"r": {"score": 1.0, "weight": 1.0}}
    traces = [trace(one, id=f"{step} {number} {uid}", rewards=rewards) for number, one in enumerate(said)]
    append(run / STEP.format(step=step), *traces)


@pytest.fixture
def run(tmp_path):
    write(tmp_path / "run", 1, *[f"question {number:02}?" for number in range(60)])
    return tmp_path / "run"


@pytest.fixture
def watch(run, tmp_path):
    with Watch(tmp_path / "x.sqlite", [Followed(run, lambda: source_for(run))]) as watch:
        watch.look()
        yield watch


@pytest.fixture
def live(request, browser, watch):
    """Return a function that opens a page of the growing run, under a base_url where the test names one."""
    base = getattr(request, "param", "/")
    app = Datasette([str(watch.database)], settings={"suggest_facets": False, "base_url": base}).app()
    with serving(app) as address, windows(browser, viewport={"width": 1000, "height": 500}) as context:

        def open_at(path):
            page = context.new_page()
            page.goto(f"{address}{base}-/rltracer/x/{path}")
            return page

        yield open_at


def ask(page):
    """Have the page ask now, as it does when somebody comes back to it, instead of in some seconds."""
    with page.expect_response(lambda response: "/live" in response.url):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


@pytest.mark.parametrize(
    ("live", "path"),
    [("/", ""), ("/", "run/1"), ("/under/", "step/1/1"), ("/under/", "group/1")],
    indirect=["live"],
)
def test_what_is_new_is_shown_when_asked_for(live, watch, run, path):
    page = live(path)
    ask(page)
    assert page.locator(NEWS).count() == 0
    before = page.locator("[data-part]").all_inner_texts()
    write(run, 1, "question 00?", uid="second")
    watch.look()
    ask(page)
    page.locator(NEWS).wait_for()
    assert page.locator(".news span").inner_text() == "1 new trajectory"
    assert page.locator("[data-part]").all_inner_texts() == before  # nothing has moved by itself
    page.locator(".news button").click()
    page.locator(NEWS).wait_for(state="hidden")
    after = page.locator("[data-part]").all_inner_texts()
    page.reload()
    assert page.locator("[data-part]").all_inner_texts() == after != before


def test_the_place_of_the_reader_is_kept(live, watch, run):
    page = live("step/1/1?_sort_desc=id")
    link = page.locator("tr[data-row] a").nth(30)
    link.focus()
    href, top = link.get_attribute("href"), link.bounding_box()["y"]
    assert page.evaluate("scrollY") > 300
    write(run, 1, *[f"new {number:02}?" for number in range(20)], uid="second")
    watch.look()
    ask(page)
    page.locator(".news button").click()
    page.get_by_text("new 00?").wait_for()
    same = page.locator(f'tr[data-row] a[href="{href}"]')
    assert same.inner_text() == "question 29?"
    assert abs(same.bounding_box()["y"] - top) < 1
    assert page.evaluate("document.activeElement.getAttribute('href')") == href


def test_a_step_without_news_stays_quiet_and_the_run_says_so(live, watch, run):
    step, whole = live("group/1"), live("run/1")
    write(run, 2, "one?", "two?")
    watch.look()
    ask(step)
    ask(whole)
    whole.locator(NEWS).wait_for()
    assert whole.locator(".news span").inner_text() == "2 new trajectories"
    assert step.locator(NEWS).count() == 0


def test_a_file_that_is_away_for_a_while_is_told_until_it_is_back(live, watch, run):
    page = live("run/1")
    (run / STEP.format(step=1)).rename(run / "away")
    watch.look()
    ask(page)
    page.locator(NEWS).wait_for()
    assert page.locator(".news span").inner_text() == "This page has changed"
    (run / "away").rename(run / STEP.format(step=1))
    watch.look()
    ask(page)
    page.locator(NEWS).wait_for(state="hidden")


def test_nothing_is_asked_while_the_page_is_hidden(live):
    page = live("")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert page.evaluate("performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/live')).length") == 0
    page.evaluate("delete document.hidden")
    ask(page)
