"""The charts in a real browser, from a real server: drawn under a strict policy, clicked, and saved."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sqlite3
from contextlib import closing
from urllib.parse import parse_qsl, urlsplit

import pytest
from datasette.app import Datasette

from rltracer_sqlite.charts import CHARTS, Filters, describe_rows, find_span, plan_query, read_rows
from rltracer_sqlite.charts.figure import Figure
from rltracer_sqlite.charts.render import render_html
from tests.index_factory import make_index
from tests.plugin_charts.conftest import rollouts
from tests.serving import PATIENCE, serving, windows

HOSTILE = '</script><img src=x onerror="alert(1)">'
MARKS = {  # what can be pointed at in each chart
    "histogram": ".mark-rect.role-mark path",
    "zero_variance": ".mark-rect.role-mark path",
    "difficulty": ".mark-rect.role-mark path",
}
POINTS = ".mark-path.role-mark path"  # the cells around points, which catch the pointer


def run_rows():
    for step in range(1, 9):
        for number in range(6):
            name = HOSTILE if number == 0 else f"prompt {number}"
            common = {"step": step, "prompt": name, "env": HOSTILE if number == 0 else "math", "tool_calls": number}
            for row in rollouts((number * 2 + step) % 5, 4, **common):
                yield {**row, "rewards.format.score": 0.5, "completion_tokens": 100 + step, "truncated": number % 2}
    yield from rollouts(1, 2, step=4, split="eval", prompt="held out")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return make_index(tmp_path_factory.mktemp("browser") / "run.sqlite", run_rows())


@pytest.fixture(scope="module")
def server(index):
    with serving(Datasette([str(index)], settings={"suggest_facets": False}).app()) as address:
        yield address


@pytest.fixture
def page(browser):
    with windows(browser, viewport={"width": 1000, "height": 900}, accept_downloads=True) as context:
        yield context.new_page()


def open_chart(page, server, chart, query=""):
    page.goto(f"{server}/-/rltracer/run/run/1/charts/{chart}{query}")
    page.wait_for_selector("figure[data-state=drawn]")


def content_of(page, server, chart, query=""):
    return page.request.get(f"{server}/-/rltracer/run/run/1/charts/{chart}.json{query}").json()


@pytest.mark.parametrize("chart", CHARTS)
def test_is_drawn_under_a_strict_policy_and_a_click_leads_to_the_rows_behind_the_mark(page, server, chart):
    response = page.goto(f"{server}/-/rltracer/run/run/1/charts/{chart}")
    assert "script-src 'self'" in response.headers["content-security-policy"]
    page.wait_for_selector("figure[data-state=drawn]")
    assert page.locator(".drawing svg path").count() > 5
    content = content_of(page, server, chart)
    assert page.locator(".drawing[role=graphics-document]").get_attribute("aria-label") == content["description"]
    assert page.locator("figcaption").inner_text() == " ".join(content["description"].split())
    address = clicked(page, page.locator(MARKS.get(chart, POINTS)).first)
    filters = dict(parse_qsl(address.query))
    assert address.path == content["links"]["table"]
    assert filters["run_id"] == "1"
    assert linked_rows(page) or chart == "zero_variance"


def clicked(page, mark):
    """Return the address that a click on a mark leads to."""
    mark.hover(force=True)
    page.wait_for_selector(".rltracer-tip:not([hidden])")
    with page.expect_navigation():
        mark.click(force=True)
    return urlsplit(page.url)


def linked_rows(page):
    """Return the rows of the table that the page shows."""
    return page.request.get(page.url.replace("?", ".json?", 1) + "&_shape=objects").json()["rows"]


def test_a_bar_leads_to_as_many_rows_as_it_says(page, server):
    open_chart(page, server, "histogram")
    bars = page.locator(MARKS["histogram"])
    for number in range(3):
        bars.nth(number).hover(force=True)
        shown = dict(zip(*[iter(page.locator(".rltracer-tip :is(dt, dd)").all_inner_texts())] * 2, strict=True))
        with page.expect_navigation():
            bars.nth(number).click(force=True)
        rows = linked_rows(page)
        assert len(rows) == int(shown["prompts"])
        assert {row["pass_bucket"] for row in rows} == {shown["pass rate"]}
        page.go_back()
        page.wait_for_selector("figure[data-state=drawn]")


def test_plotted_numbers_are_those_of_the_sql(page, server):
    open_chart(page, server, "pass_rate")
    labels = page.locator(".mark-symbol.role-mark path").evaluate_all("all => all.map(mark => mark.ariaLabel)")
    drawn = [
        (int(re.search(r"step: (\d+)", label)[1]), re.search(r"pass rate: ([\d.]+%)", label)[1]) for label in labels
    ]
    rows = content_of(page, server, "pass_rate")["rows"]
    assert sorted(drawn) == sorted((row["step_first"], f"{row['pass_rate']:.1%}") for row in rows)


def test_positions_are_those_of_the_numbers(page, server):
    open_chart(page, server, "pass_rate")
    rows = content_of(page, server, "pass_rate")["rows"]
    heights = page.evaluate(
        """() => {
            const view = document.querySelector("figure").view;
            const [scale, height] = [view.scale("y"), view.height()];
            const marks = [...document.querySelectorAll(".mark-symbol.role-mark path")];
            return marks.map((mark) => 1 - Number(mark.getAttribute("transform").match(/,([\\d.]+)\\)/)[1]) / height);
        }"""
    )
    assert sorted(heights) == pytest.approx(sorted(row["pass_rate"] for row in rows), abs=1e-3)


@pytest.fixture(scope="module")
def server_of_gaps(tmp_path_factory):
    """Serve steps 1 to 40 without 2 and 4, of which nothing was read, and evaluations of steps 1 and 21."""
    steps = [("train", step) for step in (1, 3, *range(5, 41))] + [("eval", 1), ("eval", 21)]
    common = {"completion_tokens": 5, "truncated": 0}
    rows = [row for split, step in steps for row in rollouts(1, 2, split=split, step=step, **common)]
    index = make_index(tmp_path_factory.mktemp("gaps") / "run.sqlite", rows)
    with closing(sqlite3.connect(index)) as connection, connection:
        connection.executemany("insert into steps (run_id, step, split) values (1, ?, 'train')", [(2,), (4,)])
    with serving(Datasette([str(index)], settings={"suggest_facets": False}).app()) as address:
        yield address


@pytest.mark.parametrize(("chart", "panels"), [("pass_rate", 1), ("reward", 1), ("length", 3), ("failures", 2)])
def test_a_line_breaks_at_what_was_not_read_and_a_point_alone_is_seen(page, server_of_gaps, chart, panels):
    open_chart(page, server_of_gaps, chart)
    lines = page.locator(".mark-line path").evaluate_all("all => all.map(line => line.getAttribute('d'))")
    assert sorted(line.count("L") for line in lines) == sorted([0, 0, 35, 1] * panels)
    points = page.locator(".mark-symbol.role-mark path").evaluate_all(
        "all => all.map(point => [point.ariaLabel, Number(point.getAttribute('opacity'))])"
    )
    seen = [int(re.search(r"step: (\d+)", label)[1]) for label, opacity in points if opacity == 1]
    assert sorted(seen) == sorted([1, 3, 1, 21] * panels)
    assert "No line is drawn across what was not read." in page.locator("figcaption").inner_text()


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_download(page, server, kind, tmp_path):
    open_chart(page, server, "difficulty")
    with page.expect_download() as download:
        page.get_by_role("button", name=kind.upper()).click()
    content = (tmp_path / "chart").with_suffix(f".{kind}")
    download.value.save_as(content)
    assert download.value.suggested_filename == f"difficulty.{kind}"
    assert content.read_bytes().startswith(b"\x89PNG" if kind == "png" else b"<svg")
    if kind == "svg":
        drawn = content.read_text()
        assert "Difficulty map, train: demo" in drawn
        assert "Success: reward &gt;= 1; all of train scored." in drawn


def test_a_bar_that_was_not_read_is_shaded_and_one_of_none_is_a_line(page, server_of_gaps):
    open_chart(page, server_of_gaps, "zero_variance")
    gaps = page.locator('.drawing path[aria-label*="not read"]').evaluate_all("all => all.map(gap => gap.ariaLabel)")
    assert [re.search(r"step: (\d+)", label)[1] for label in gaps] == ["2", "4"]
    assert page.locator(".drawing .mark-rule line[aria-label]").count() == 38
    assert "Shaded: not read." in page.locator("figcaption").inner_text()


def test_table_holds_every_row_and_its_link(page, server):
    open_chart(page, server, "difficulty")
    page.locator("summary").click()
    rows = content_of(page, server, "difficulty")["rows"]
    assert page.locator("tbody tr").count() == len(rows)
    link = page.locator("tbody tr a").first.get_attribute("href")
    assert f"prompt_id={rows[0]['prompt_id']}" in link


def test_a_prompt_of_the_map_of_difficulty_is_named_by_its_number(page, server):
    open_chart(page, server, "difficulty")
    rows = content_of(page, server, "difficulty")["rows"]
    named = list(dict.fromkeys(f"{row['prompt_id']} · {row['preview']}" for row in rows))
    shown = page.locator(".role-axis-label text").all_text_contents()
    labels = [label for label in shown if " · " in label]
    assert len(labels) == len(named) == 6
    assert all(name.startswith(label.removesuffix("…")) for label, name in zip(labels, named, strict=True))
    page.locator(MARKS["difficulty"]).first.hover(force=True)
    assert named[0] in page.locator(".rltracer-tip dd").first.text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_page(browser, server, scheme):
    with windows(browser, color_scheme=scheme) as context:
        opened = context.new_page()
        open_chart(opened, server, "pass_rate")
        ink = {"light": "#276890", "dark": "#7fb9dc"}[scheme]
        assert opened.locator(f'.mark-line path[stroke="{ink}"]').count() == 1


@pytest.mark.parametrize("width", [380, 1400])
def test_fits_its_page(page, server, width):
    page.set_viewport_size({"width": width, "height": 800})
    for chart in ("difficulty", "reward", "pass_rate"):
        open_chart(page, server, chart)
        assert page.locator(".drawing svg").bounding_box()["width"] <= width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ends = page.locator(".mark-text.role-mark text").all_text_contents()
    assert ends == (["train", "eval"] if width < 560 else ["train, 192 scored in all", "eval, 2 scored in all"])


def test_page_of_all_charts_draws_them_under_a_policy_for_scripts(page, server):
    with_policy(page, server)
    page.goto(f"{server}/-/rltracer/run/run/1/charts?env=math")
    for chart in CHARTS:
        page.wait_for_selector(f"#chart-{chart}[data-state=drawn]")
    assert page.locator("#chart-difficulty").get_by_text(HOSTILE).count() == 0


def with_policy(page, server):
    """Add script-src 'self' to a page of Datasette; its own inline scripts, which it cannot do without, by hash."""

    def add(route):
        response = route.fetch()
        scripts = re.findall(r"<script>(.*?)</script>", response.text(), re.S)
        hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
        allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
        headers = {**response.headers, "content-security-policy": f"script-src 'self' {allowed}"}
        route.fulfill(response=response, headers=headers)

    page.route(re.compile(rf"^{re.escape(server)}/-/rltracer/run/run/1/charts\?"), add)


def test_a_window_that_is_too_small_is_said(browser, server):
    context = browser.new_context()  # not `page`: the browser notes the answer's status on its console
    context.set_default_timeout(PATIENCE * 1000)
    opened = context.new_page()
    opened.goto(f"{server}/-/rltracer/run/run/1/charts/histogram?_window=1")
    opened.wait_for_selector("figure[data-state=failed]")
    assert "needs windows of at least 2 for 8 steps" in opened.get_by_role("alert").inner_text()
    context.close()


def test_nothing_to_draw_is_said(page, server):
    open_chart(page, server, "pass_rate", "?env=none")
    assert page.locator("figcaption").inner_text().startswith("Nothing to draw: no trajectory of demo with env none ")
    assert page.locator(".drawing, button").count() == 0


@pytest.mark.parametrize("chart", ["reward", "difficulty"])
def test_html_file_draws_without_a_server(page, index, tmp_path, chart):
    with closing(sqlite3.connect(index)) as connection:
        rows = read_rows(connection, plan_query(chart, Filters(1), find_span(connection, 1)))
    file = tmp_path / "chart.html"
    file.write_bytes(render_html(Figure(chart, rows, describe_rows(chart, rows), "Rests on this.", "a run")))
    page.goto(file.as_uri())
    page.wait_for_selector("figure[data-state=drawn]")
    assert page.locator(".drawing svg path").count() > 5
    assert json.loads(page.locator("figure script").text_content())["rows"] == rows
    assert page.locator("h2").inner_text().endswith(": a run")
    assert page.locator("h2 ~ p").all_inner_texts()[1] == "Rests on this."
    assert page.locator("figcaption").inner_text() == " ".join(describe_rows(chart, rows).split())
