"""The pages of charts: what they draw, where their links lead, and who may see them."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from datasette.app import Datasette
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltracer_sqlite.charts import CHARTS, load_spec
from rltracer_sqlite.passrates import pass_bin
from rltracer_sqlite.unseen import INVISIBLE

from ..commands import rltracer
from ..index_factory import make_index
from .conftest import rollouts

BASE = "/-/rltracer/run/run/1/charts"


async def content_of(datasette, chart, query=""):
    response = await datasette.client.get(f"{BASE}/{chart}.json{query}")
    assert response.status_code == 200, response.text
    return response.json()


async def rows_of(datasette, url):
    """Return the rows behind a page of a table or of SQL, which the two lines of Datasette give at other addresses."""
    response = await datasette.client.get(url.replace("?", ".json?", 1) + "&_shape=objects&_size=max")
    while response.status_code in (301, 302):
        response = await datasette.client.get(response.headers["location"])
    return response.json()["rows"]


def link_of(content, row):
    """Follow what charts.js does for a mark: fixed filters, and one per field of its row."""
    link = content["links"]
    filters = [*link["fixed"], *((name, row[field]) for name, field in link["filters"].items() if field in row)]
    query = "&".join(f"{name}={value}" if value is not None else f"{name}__isnull=1" for name, value in filters)
    return f"{link['table']}?{query}"


@pytest.mark.asyncio
@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("query", ["", "?env=math", "?split=train&step__gte=2&step__lte=5&_window=2"])
async def test_sql_link_gives_exactly_what_is_drawn(datasette, chart, query):
    content = await content_of(datasette, chart, query)
    assert content["rows"]
    assert await rows_of(datasette, content["sql_url"]) == content["rows"]


@pytest.mark.asyncio
async def test_a_chart_tells_where_its_lines_break(tmp_path):
    path = make_index(
        tmp_path / "run.sqlite", [{"step": step, "reward": 1, "truncated": 0} for step in (1, 1, 2, 2, 4, 4, 6, 6)]
    )
    with sqlite3.connect(path) as connection:
        connection.execute("insert into steps (run_id, step, split) values (1, 3, 'train')")
    connection.close()
    datasette = Datasette([str(path)])
    for chart in ("pass_rate", "reward", "length", "failures"):
        content = await content_of(datasette, chart)
        assert content["stretches"] == [0, 0, 1, 1]
        assert " No trajectories of step 3 of train were read. No line is drawn across" in content["description"]
    for chart in ("zero_variance", "difficulty"):
        content = await content_of(datasette, chart, "?_window=2")
        assert set(content["stretches"]) == {0}
        assert "of train were read. A window holds only those of its steps that were read." in content["description"]
        assert "line" not in content["description"]


@pytest.mark.asyncio
@pytest.mark.parametrize("chart", CHARTS)
async def test_what_has_no_step_is_drawn_or_said_not_to_be(tmp_path, chart):
    rows = [{"step": step, "reward": 1.0, "turns": 1, "truncated": 0} for step in (1, 1, None)]
    datasette = Datasette([str(make_index(tmp_path / "run.sqlite", rows))])
    content = await content_of(datasette, chart)
    has_window = any(row["step_first"] is None for row in content["rows"])
    assert has_window is (chart in ("histogram", "difficulty"))
    assert content["description"].count("1 trajectory has no step and is not drawn.") == (not has_window)
    assert "no step and" not in (await content_of(datasette, chart, "?step__gte=1"))["description"]


@pytest.mark.asyncio
@pytest.mark.parametrize("chart", ["difficulty", "histogram"])
async def test_a_chart_of_prompts_tells_how_many_have_no_score(tmp_path, chart):
    rows = [{"step": 1, "prompt": f"p{number}", "reward": 1.0 if number else None} for number in range(4)]
    datasette = Datasette([str(make_index(tmp_path / "run.sqlite", rows))])
    said = (await content_of(datasette, chart))["description"]
    assert "of 3 scored prompts of train " in said
    assert said.endswith("; 1 of 4 trajectories of train unscored; 1 of 4 prompts has no score.")


@pytest.mark.asyncio
async def test_a_bar_leads_to_its_prompts(datasette):
    content = await content_of(datasette, "histogram", "?_window=2")
    assert content["links"]["table"] == "/run/prompt_windows"
    for row in content["rows"]:
        assert len(await rows_of(datasette, link_of(content, row))) == row["prompts"]


@pytest.mark.asyncio
async def test_a_cell_leads_to_its_groups(datasette):
    content = await content_of(datasette, "difficulty", "?_window=2&env=math")
    for row in content["rows"]:
        groups = await rows_of(datasette, link_of(content, row))
        assert sum(group["successes"] for group in groups) == row["successes"]
        assert sum(group["scored"] for group in groups) == row["scored"]


@pytest.mark.asyncio
@pytest.mark.parametrize(("chart", "count"), [("pass_rate", "scored"), ("length", "trajectories")])
async def test_a_point_leads_to_its_rows(datasette, chart, count):
    content = await content_of(datasette, chart)
    for row in content["rows"]:
        rows = await rows_of(datasette, link_of(content, row))
        assert (sum(found["scored"] for found in rows) if chart == "pass_rate" else len(rows)) == row[count]


@pytest.mark.asyncio
async def test_windows_that_the_view_does_not_know_lead_to_their_steps(datasette):
    content = await content_of(datasette, "histogram", "?step__gte=2&_window=5")
    assert content["links"]["table"] == "/run/prompt_groups"
    groups = await rows_of(datasette, link_of(content, content["rows"][0]))
    assert {group["step"] for group in groups} == {2, 3, 4, 5, 6}


@pytest.mark.asyncio
async def test_page_carries_its_filters_to_every_chart(datasette):
    page = (await datasette.client.get(f"{BASE}?split=train&env=math&step__gte=2&_window=5")).text
    urls = [unescape(url) for url in re.findall(r'data-url="([^"]+)"', page)]
    assert [urlsplit(url).path for url in urls] == [f"{BASE}/{chart}.json" for chart in CHARTS]
    expected = [("split", "train"), ("env", "math"), ("step__gte", "2"), ("_window", "5")]
    assert all(parse_qsl(urlsplit(url).query) == expected for url in urls)
    assert '<option selected value="math">' in page


@pytest.mark.asyncio
async def test_scripts_and_styles_of_the_page_exist(datasette):
    for path in (BASE, f"{BASE}/pass_rate"):
        page = (await datasette.client.get(path)).text
        files = re.findall(r'(?:src|href)="(/-/static-plugins/[^"]+)"', page)
        names = [urlsplit(file).path.rpartition("/")[2] for file in files]
        drawing = re.findall(r"vega\S+|chart\S*js", " ".join(names))
        assert drawing == ["vega.mjs", "chart_view.js", "chart.js", "charts.js"]
        for file in files:
            assert (await datasette.client.get(file)).status_code == 200


@pytest.mark.threat("T52")
@pytest.mark.asyncio
@pytest.mark.parametrize("chart", CHARTS)
async def test_page_of_one_chart_is_strict(datasette, chart):
    response = await datasette.client.get(f"{BASE}/{chart}")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
    assert "unsafe" not in policy
    assert load_spec(chart)["usermeta"]["rltracer"]["title"] in unescape(response.text)
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", response.text)


@pytest.mark.asyncio
async def test_page_of_one_chart_has_the_way_down_to_it(datasette):
    text = (await datasette.client.get(f"{BASE}/reward?split=train&step__gte=2")).text
    way = text[text.index("<nav") : text.index("</nav>")]
    assert re.findall(r'<a href="([^"]+)">([^<]+)<', unescape(way)) == [
        ("/", "home"),
        ("/run", "run"),
        ("/-/rltracer/run/", "rollouts"),
        ("/-/rltracer/run/run/1", "run: demo"),
        ("/-/rltracer/run/run/1/charts?split=train&step__gte=2", "charts"),
    ]
    assert '<span aria-current="page">Reward and its components over steps</span>' in way


@pytest.mark.asyncio
async def test_a_run_without_steps_says_so_as_in_the_terminal(tmp_path):
    rows = [{"run": "chats", "step": None, "reward": 1.0}] * 2
    database = make_index(tmp_path / "run.sqlite", rows)
    told = rltracer("plot", database, "pass-rate").stderr
    assert "Nothing to draw: chats records no steps." in told
    for chart, query in (("pass_rate", ""), ("length", "?step__gte=3")):
        content = await content_of(Datasette([str(database)]), f"{chart}", query)
        assert content["description"].startswith("Nothing to draw: chats records no steps.")


@pytest.mark.asyncio
async def test_a_run_without_a_score_says_what_sets_another_rule_but_not_in_which_folder_the_index_is(tmp_path):
    database = make_index(tmp_path / "run.sqlite", [{"reward": 1.0}], rule=("metrics.x", 1.0))
    said = "Nothing to draw: no trajectory of demo records metrics.x. rltracer success {} --rule 'reward >= 1' sets "
    assert said.format(database) in rltracer("plot", database, "pass-rate").stderr
    description = (await content_of(Datasette([str(database)]), "pass_rate"))["description"]
    assert description.startswith(said.format("run.sqlite"))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{BASE}/nothing", 404),
        (f"{BASE}/nothing.json", 404),
        ("/-/rltracer/run/run/2/charts", 404),
        ("/-/rltracer/other/run/1/charts", 404),
        ("/-/rltracer/run/run/999999999999999999/charts", 404),
        (f"{BASE}?step__gte=x", 400),
        (f"{BASE}/pass_rate.json?_window=0", 400),
        (f"{BASE}/pass_rate.json?step=1%20or%201", 400),
        (f"{BASE}/histogram.json?_window=99999999999", 400),
    ],
)
async def test_status(datasette, path, status):
    assert (await datasette.client.get(path)).status_code == status


@pytest.mark.asyncio
@pytest.mark.parametrize("table", ["trajectories", "prompts", "prompt_groups"])
async def test_who_may_not_see_the_rows_sees_no_chart(index_path, table):
    metadata = {"databases": {"run": {"tables": {table: {"allow": {"id": "root"}}}}}}
    datasette = Datasette([str(index_path)], metadata=metadata)
    datasette.root_enabled = True
    for path in (BASE, f"{BASE}/pass_rate", f"{BASE}/pass_rate.json"):
        assert (await datasette.client.get(path)).status_code == 403
        cookies = {"ds_actor": datasette.sign({"a": {"id": "root"}}, "actor")}
        assert (await datasette.client.get(path, cookies=cookies)).status_code == 200


@pytest.mark.asyncio
async def test_hostile_names_stay_text(tmp_path):
    hostile = '"><script>alert(1)</script>'
    path = make_index(tmp_path / "run.sqlite", [{"run": hostile, "env": hostile, "split": hostile, "prompt": hostile}])
    datasette = Datasette([str(path)])
    for below in ("", "/pass_rate", "/pass_rate?split=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"):
        assert "<script>alert" not in (await datasette.client.get(BASE + below)).text
    response = await datasette.client.get(f"{BASE}/difficulty.json")
    assert response.headers["content-type"].startswith("application/json")
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.asyncio
async def test_base_url(index_path):
    datasette = Datasette([str(index_path)], settings={"base_url": "/prefix/"})
    page = (await datasette.client.get(BASE)).text
    assert f'data-url="/prefix{BASE}/pass_rate.json"' in page
    content = await content_of(datasette, "pass_rate")
    assert content["links"]["table"] == "/prefix/run/prompt_groups"
    assert content["sql_url"].startswith("/prefix/run?sql=")


@pytest.mark.asyncio
async def test_time_limit_is_said(index_path, tmp_path):
    path = shutil.copy(index_path, tmp_path / "run.sqlite")
    datasette = Datasette([str(path)], settings={"sql_time_limit_ms": 50})
    # An index that comes like this is refused; this one changes while it is served.
    assert (await datasette.client.get(f"{BASE}/length.json")).status_code == 200
    with sqlite3.connect(path) as connection:
        # The sums behind the curves, and a billion more rows.
        connection.executescript(
            """
            alter table step_values rename to stored;
            create view step_values as
            with recursive n(i) as (values (1) union all select i + 1 from n where i < 1e9)
            select stored.* from stored, n;
            """
        )
    connection.close()
    response = await datasette.client.get(f"{BASE}/length.json")
    assert response.status_code == 503
    assert "sql_time_limit_ms" in response.json()["error"]


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.integers(0, 6), st.sampled_from(["train", "eval"])), min_size=1, max_size=25
    )
)
def test_facets_views_and_python_agree(tmp_path_factory, counts):
    rows = [
        row
        for number, (scored, successes, split) in enumerate(counts)
        for row in rollouts(min(successes, scored), scored, split=split, prompt=f"p{number}", step=number)
    ]
    path = make_index(tmp_path_factory.mktemp("generated") / "run.sqlite", rows)
    expected: dict[str, int] = {}
    for scored, successes, _ in counts:
        label = pass_bin(scored, min(successes, scored))
        expected[label] = expected.get(label, 0) + 1

    async def found():
        datasette = Datasette([str(path)], settings={"suggest_facets": False})
        facets = {}
        for kind, column in (("_facet_passrate", "pass_rate"), ("_facet", "pass_bucket")):
            data = (await datasette.client.get(f"/run/prompt_groups.json?{kind}={column}&_extra=facet_results")).json()
            results = data["facet_results"].get("results", data["facet_results"])
            facets[column] = {value["label"]: value["count"] for value in results[column]["results"]}
        windows = await rows_of(datasette, "/run/prompt_windows?window_size=1")
        return facets, windows

    facets, windows = asyncio.run(found())
    assert facets == {"pass_rate": expected, "pass_bucket": expected}
    assert [sum(row["pass_bucket"] == label for row in windows) for label in expected] == list(expected.values())


@pytest.mark.asyncio
async def test_what_a_chart_says_of_names_hides_nothing(tmp_path):
    named = "a\u202e\u200bb"
    rows = [{"run": named, "split": named, "step": 1, "reward": float(number)} for number in range(2)]
    datasette = Datasette([str(make_index(tmp_path / "run.sqlite", rows))])
    content = await content_of(datasette, "pass_rate")
    assert "a⟨U+202E⟩⟨U+200B⟩b" in content["description"]
    assert content["rows"][0]["split"] == named  # which the links of its marks ask for
    alone, every = [(await datasette.client.get(f"{BASE}{below}")).text for below in ("/pass_rate", "")]
    for page in (alone, re.sub(r'value="[^"]*"', "", every)):
        assert "U+202E" in page
        assert not INVISIBLE.search(page)
