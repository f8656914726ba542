"""When charts are drawn: near the window at once, the others one by one where somebody looks, all before printing."""

from __future__ import annotations

import re

import pytest
from datasette.app import Datasette

from rltracer_sqlite.charts import CHARTS
from tests.index_factory import make_index
from tests.plugin_charts.conftest import rollouts
from tests.serving import serving, windows

RUN = "/-/rltracer/run/run/1"
ALL_DRAWN = f"document.querySelectorAll('figure[data-state=drawn]').length === {len(CHARTS)}"
# Resolves when the page has had time for whatever it does when it has time.
IDLE = "new Promise((go) => requestIdleCallback(() => requestAnimationFrame(() => requestIdleCallback(go))))"
UPDATE = "document.dispatchEvent(new Event('rltracer-update'))"
STATES = """
window.states = [];
new MutationObserver((changes) => {
  for (const {target} of changes) window.states.push([target.dataset.chart, target.dataset.state]);
}).observe(document, {subtree: true, attributes: true, attributeFilter: ["data-state"]});
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    common = {"completion_tokens": 5, "truncated": 0, "turns": 2}
    rows = [row for step in range(1, 9) for row in rollouts(step % 3, 4, step=step, prompt=f"p{step % 2}", **common)]
    index = make_index(tmp_path_factory.mktemp("due") / "run.sqlite", rows)
    with serving(Datasette([str(index)], settings={"suggest_facets": False}).app()) as address:
        yield address


@pytest.fixture
def page(browser):
    expected = (
        "Synchronous XMLHttpRequest"  # the browser would have a page not do so, but printing waits for no promise
    )
    with windows(browser, expected, viewport={"width": 1000, "height": 300}) as context:
        yield context.new_page()


def chart_of(request):
    found = re.search(r"/charts/(\w+)\.json", request.url)
    return found and found[1]


def follow(page):
    """Return a list that grows by each question for a chart and each answer."""
    events = []
    for event in ("request", "requestfinished"):
        page.on(event, lambda request, event=event: chart_of(request) and events.append((event, chart_of(request))))
    return events


def hold(page, *charts):
    """Keep the answers of some charts back, and return the list of them."""
    held = []
    page.route(re.compile(rf"/charts/({'|'.join(charts)})\.json"), lambda route: held.append(route))
    return held


def let_go(page, held, number=0):
    """Let what was kept back be answered, as soon as it has been asked for."""
    while len(held) <= number:
        page.evaluate(IDLE)
    held[number].continue_()


def one_by_one(charts):
    return [(event, chart) for chart in charts for event in ("request", "requestfinished")]


def test_charts_far_below_the_window_are_drawn_without_scrolling_one_after_another(page, server):
    events = follow(page)
    page.add_init_script(STATES)
    page.goto(f"{server}{RUN}")
    page.wait_for_function(ALL_DRAWN)
    assert events == one_by_one(CHARTS)
    assert page.evaluate("states") == [[chart, s] for chart in CHARTS for s in ("loading", "drawing", "drawn")]
    assert page.evaluate("scrollY") == 0
    events.clear()
    page.evaluate(UPDATE)
    while len(events) < 2 * len(CHARTS):
        page.wait_for_event("requestfinished")
    assert events == one_by_one(CHARTS)


def test_the_others_wait_for_what_is_near_the_window_and_it_for_none_of_them(page, server):
    events = follow(page)
    near, far = hold(page, "pass_rate"), hold(page, "reward")
    page.goto(f"{server}{RUN}/charts")
    page.wait_for_selector("#chart-pass_rate[data-state=loading]")
    page.evaluate(IDLE)
    assert events == [("request", "pass_rate")]
    near[0].continue_()
    page.wait_for_selector("#chart-reward[data-state=loading]")
    page.evaluate(IDLE)
    assert {chart for _, chart in events} == {"pass_rate", "reward"}
    page.locator("#chart-zero_variance").scroll_into_view_if_needed()
    page.wait_for_selector("#chart-zero_variance[data-state=drawn]")
    assert page.locator("#chart-difficulty").get_attribute("data-state") is None
    far[0].continue_()
    page.wait_for_function(ALL_DRAWN)


def test_a_page_that_is_not_looked_at_waits(page, server):
    page.add_init_script("window.isHidden = true; Object.defineProperty(document, 'hidden', {get: () => isHidden})")
    page.goto(f"{server}{RUN}/charts")
    page.wait_for_selector("#chart-pass_rate[data-state=drawn]")
    page.evaluate(IDLE)
    assert page.locator("figure[data-state]").count() == 1
    page.evaluate("isHidden = false; document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_function(ALL_DRAWN)


def test_what_is_asked_for_when_the_page_is_brought_up_to_date_is_asked_for_again(page, server):
    page.add_init_script("window.isHidden = false; Object.defineProperty(document, 'hidden', {get: () => isHidden})")
    events, held = follow(page), hold(page, "pass_rate")
    page.goto(f"{server}{RUN}/charts")
    page.wait_for_selector("#chart-pass_rate[data-state=loading]")
    page.evaluate(f"{UPDATE}; isHidden = true")
    with page.expect_request(re.compile("/charts/pass_rate")):
        let_go(page, held)
    page.evaluate(UPDATE)
    with page.expect_request(re.compile("/charts/pass_rate")):
        let_go(page, held, 1)
    let_go(page, held, 2)
    page.evaluate("isHidden = false; document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_function(ALL_DRAWN)
    asked = [chart for event, chart in events if event == "request"]
    assert [asked.count(chart) for chart in CHARTS] == [3] + [1] * (len(CHARTS) - 1)


@pytest.mark.parametrize("path", [RUN, f"{RUN}/charts"], ids=["run", "charts"])
def test_a_frame_says_that_it_is_not_drawn_yet_at_about_the_height_that_it_will_have(page, server, path):
    held = hold(page, "pass_rate")
    page.goto(f"{server}{path}")
    page.wait_for_selector("#chart-pass_rate[data-state=loading]")
    assert page.locator("figure .drawing").all_inner_texts() == ["Drawing …"] * len(CHARTS)
    before = page.locator("#chart-pass_rate").bounding_box()["height"]
    let_go(page, held)
    page.wait_for_function(ALL_DRAWN)
    assert page.locator("#chart-pass_rate").bounding_box()["height"] == pytest.approx(before, abs=30)
    assert page.get_by_text("Drawing …").count() == 0


def test_a_frame_that_fails_or_has_nothing_says_so_far_below_too(browser, server):
    with windows(browser, "status of 400", viewport={"width": 1000, "height": 400}) as context:
        page = context.new_page()
        page.goto(f"{server}{RUN}/charts?_window=1&env=none")
        page.wait_for_function(
            "document.querySelectorAll('figure:is([data-state=drawn], [data-state=failed])').length === 7"
        )
        assert "needs windows of at least 2" in page.locator("#chart-histogram").get_by_role("alert").inner_text()
        assert page.get_by_text("Drawing …").count() == 0
        assert page.get_by_text("Nothing to draw: no trajectory of").count() == 6


def test_without_javascript_no_frame_waits(browser, server):
    with windows(browser, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{server}{RUN}/charts")
        assert not page.get_by_text("Drawing …").first.is_visible()
        assert page.get_by_role("link", name="The numbers as JSON").count() == len(CHARTS)


def test_all_that_are_left_are_drawn_before_printing(page, server):
    page.add_init_script("window.fetch = () => new Promise(() => {})")  # an index that does not answer in time
    page.goto(f"{server}{RUN}")
    page.wait_for_function("globalThis.rltracerVega")
    page.evaluate(
        "addEventListener('beforeprint', () => (window.printed = document.querySelectorAll('svg.marks').length))"
    )
    page.pdf()
    assert page.evaluate("printed") == len(CHARTS)
    page.wait_for_function(ALL_DRAWN)
    assert page.locator(".tools").count() == len(CHARTS)


def test_printing_before_anything_can_be_drawn_says_so_on_paper(page, server):
    held = []
    page.route("**/vega.mjs*", lambda route: held.append(route))
    page.goto(f"{server}{RUN}/charts")
    page.wait_for_selector("#chart-pass_rate[data-state=loading]")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    said = page.evaluate(
        "[...document.querySelectorAll('figure')].map((one) => getComputedStyle(one, '::after').content)"
    )
    assert said == ['"Not drawn: the page was printed before."'] * len(CHARTS)
    assert not page.get_by_text("Drawing …").first.is_visible()
    page.emulate_media(media="screen")
    let_go(page, held)
    page.wait_for_function(ALL_DRAWN)
