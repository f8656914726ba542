"""The facets of pass rates and outcomes: bins, counts and links, alone and together with other filters."""

from __future__ import annotations

import shutil
import sqlite3
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from datasette.app import Datasette

from rltracer_sqlite.passrates import PASS_BINS, pass_bin

from ..index_factory import make_index
from .conftest import rollouts

TABLES = [("prompt_groups", "pass_rate"), ("trajectories", "group_pass_rate")]
BINS = [bin.label for bin in PASS_BINS]
LABELS = {"pass_rate": [*BINS, "unscored"], "group_pass_rate": [*BINS, "group unscored"]}
OUTCOMES = ["passed", "failed", "unscored"]
FACETS = [
    *((table, "passrate", column, label) for table, column in TABLES for label in LABELS[column]),
    *(("trajectories", "outcome", "success", label) for label in OUTCOMES),
]


async def facets_of(datasette, url):
    """Return the facets by name, whose JSON differs between the two lines of Datasette."""
    joint = "&" if "?" in url else "?"
    data = (await datasette.client.get(f"{url}{joint}_extra=facet_results")).json()
    found = data["facet_results"]
    return found.get("results", found)


async def facet_of(datasette, url, kind="passrate"):
    """Return the facet of this type, or None; an index has facets of its own from the plugin's metadata as well."""
    found = (await facets_of(datasette, url)).values()
    return next((facet for facet in found if kind in (facet["type"], facet["name"])), None)


def local(url):
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


def counts_of(facet):
    return {value["label"]: value["count"] for value in facet["results"]}


@pytest.fixture
def every_bin(tmp_path):
    """Groups of 8 with 0 to 8 successes, the quarter points among them, and one group without a score."""
    rows = [row for n in range(9) for row in rollouts(n, 8, prompt=f"prompt {n}", step=n // 3)]
    return make_index(tmp_path / "run.sqlite", [*rows, {"prompt": "unscored", "reward": None}])


@pytest.mark.asyncio
@pytest.mark.parametrize(("table", "column"), TABLES)
async def test_bins_are_ordered_and_the_ends_are_exact(every_bin, table, column):
    facet = await facet_of(Datasette([str(every_bin)]), f"/run/{table}.json?_facet_passrate={column}")
    assert [value["label"] for value in facet["results"]] == LABELS[column]
    size = 8 if table == "trajectories" else 1
    *bins, unscored = [value["count"] for value in facet["results"]]
    assert [count // size for count in bins] == [1, 1, 2, 2, 2, 1]
    assert unscored == 1


@pytest.mark.asyncio
async def test_outcomes_are_ordered_and_add_up(every_bin):
    facet = await facet_of(Datasette([str(every_bin)]), "/run/trajectories.json", "outcome")
    assert list(counts_of(facet).items()) == [("passed", 36), ("failed", 36), ("unscored", 1)]


@pytest.mark.asyncio
@pytest.mark.parametrize(("table", "kind", "column", "label"), FACETS)
async def test_link_filters_and_can_be_taken_back(every_bin, table, kind, column, label):
    datasette = Datasette([str(every_bin)])
    start = f"/run/{table}.json?_facet_{kind}={column}"
    facet = await facet_of(datasette, start, kind)
    value = next(value for value in facet["results"] if value["label"] == label)
    assert not value["selected"]
    assert (f"{column}__isnull=1" in value["toggle_url"]) == ("unscored" in label)
    chosen = await facet_of(datasette, local(value["toggle_url"]), kind)
    assert [(v["label"], v["count"], v["selected"]) for v in chosen["results"]] == [(label, value["count"], True)]
    assert parse_qsl(urlsplit(chosen["results"][0]["toggle_url"]).query)[0] == (f"_facet_{kind}", column)
    assert counts_of(await facet_of(datasette, local(chosen["results"][0]["toggle_url"]), kind)) == counts_of(facet)


@pytest.mark.asyncio
@pytest.mark.parametrize("written", ["success=1", "success__exact=1"])
async def test_a_filter_counts_as_chosen_in_either_way_to_write_it(every_bin, written):
    facet = await facet_of(Datasette([str(every_bin)]), f"/run/trajectories.json?{written}", "outcome")
    [value] = facet["results"]
    assert (value["label"], value["selected"]) == ("passed", True)
    assert "success" not in value["toggle_url"]


@pytest.mark.asyncio
@pytest.mark.parametrize("column", ["_rate", "rate__gt"])
async def test_a_column_whose_name_reads_like_a_filter(tmp_path, column):
    with sqlite3.connect(tmp_path / "odd.sqlite") as connection:
        connection.execute(f"create table odd ({column} real)")
        connection.executemany("insert into odd values (?)", [(0,), (1,), (None,)])
    connection.close()
    datasette = Datasette([str(tmp_path / "odd.sqlite")], settings={"suggest_facets": False})
    for place, label in enumerate(["0", "1", "unscored"]):
        facet = await facet_of(datasette, f"/odd/odd.json?_facet_passrate={column}")
        assert counts_of(facet) == {"0": 1, "1": 1, "unscored": 1}
        [value] = (await facet_of(datasette, local(facet["results"][place]["toggle_url"])))["results"]
        assert (value["label"], value["count"], value["selected"]) == (label, 1, True)


@pytest.mark.asyncio
@pytest.mark.parametrize(("table", "column"), TABLES)
async def test_choosing_a_bin_leaves_the_other_one(datasette, table, column):
    url = f"/run/{table}.json?env__exact=math&{column}__gte=0.25&{column}__lt=0.5&_next=7&_facet_passrate={column}"
    facet = await facet_of(datasette, url)
    assert [value["label"] for value in facet["results"]] == ["0.25–0.5"]
    back = parse_qsl(urlsplit(facet["results"][0]["toggle_url"]).query)
    assert ("env__exact", "math") in back
    assert not [key for key, _ in back if key.startswith(column) or key == "_next"]


@pytest.mark.asyncio
@pytest.mark.parametrize("filters", ["env=math", "step__gte=3&split=train", "env=code&step__lt=4", "split=eval"])
@pytest.mark.parametrize(("table", "column"), TABLES)
async def test_counts_follow_other_filters(datasette, table, column, filters):
    facet = await facet_of(datasette, f"/run/{table}.json?{filters}&_facet_passrate={column}")
    rows = (await datasette.client.get(f"/run/{table}.json?{filters}&_shape=objects&_size=max")).json()["rows"]
    expected: dict[str, int] = {}
    for row in rows:
        label = pass_bin(10**6, round(row[column] * 10**6))
        expected[label] = expected.get(label, 0) + 1
    assert expected
    assert counts_of(facet) == expected


@pytest.mark.asyncio
async def test_agrees_with_the_generated_column(datasette):
    facet = await facet_of(datasette, "/run/prompt_groups.json?_facet_passrate=pass_rate")
    plain = await facet_of(datasette, "/run/prompt_groups.json?_facet=pass_bucket", "pass_bucket")
    bins = counts_of(facet)
    bins.pop("unscored", None)  # Datasette's own facets leave null out
    assert bins == counts_of(plain)


@pytest.mark.asyncio
async def test_works_on_a_view(datasette):
    url = "/run/prompt_windows.json?window_size=2&_facet_passrate=pass_rate"
    facet = await facet_of(datasette, url)
    value = facet["results"][1]
    assert counts_of(await facet_of(datasette, local(value["toggle_url"]))) == {value["label"]: value["count"]}


@pytest.mark.asyncio
async def test_page_shows_the_bins(datasette):
    html = unescape((await datasette.client.get("/run/prompt_groups?_facet_passrate=pass_rate")).text)
    assert "pass_rate__gte=0.25&pass_rate__lt=0.5" in html
    assert html.index(">0.25–0.5</a>") < html.index(">0.75–1</a>")


@pytest.mark.asyncio
async def test_facet_from_metadata_cannot_be_hidden(index_path):
    tables = {"prompt_groups": {"facets": [{"passrate": "pass_rate"}]}}
    datasette = Datasette([str(index_path)], metadata={"databases": {"run": {"tables": tables}}})
    facet = await facet_of(datasette, "/run/prompt_groups.json")
    assert facet["type"] == "passrate"
    assert not facet["hideable"]


@pytest.mark.asyncio
async def test_is_suggested_where_there_is_a_rate(index_path):
    own = {table: {"facets": ["env"]} for table, _ in TABLES}  # else the plugin shows it without being asked
    datasette = Datasette([str(index_path)], metadata={"databases": {"run": {"tables": own}}})
    for table, column in TABLES:
        page = unescape((await datasette.client.get(f"/run/{table}")).text)
        assert f"_facet_passrate={column}" in page
    assert "_facet_passrate" not in (await datasette.client.get("/run/prompts")).text


@pytest.mark.asyncio
@pytest.mark.parametrize("config", ["nothing", '{"column": 5}', '{"column": ["pass_rate"]}', "{}", 'a"b'])
async def test_a_facet_of_nothing_is_no_facet(datasette, config):
    response = await datasette.client.get("/run/prompt_groups.json", params={"_facet_passrate": config})
    assert response.status_code == 200


@pytest.mark.asyncio
async def test_time_limit_is_reported(index_path, tmp_path):
    path = shutil.copy(index_path, tmp_path / "run.sqlite")
    with sqlite3.connect(path) as connection:
        # Reading this view to its end takes a hundred million steps, but its first rows come at once.
        connection.execute(
            """
            create view slow as
            with recursive n(i) as (values (1) union all select i + 1 from n where i < 1e8)
            select i % 5 / 4.0 as pass_rate from n
            """
        )
    connection.close()
    datasette = Datasette([str(path)], settings={"facet_time_limit_ms": 20, "suggest_facets": False})
    page = (await datasette.client.get("/run/slow?_facet_passrate=pass_rate&_nocount=1")).text
    assert "facets timed out: pass_rate" in " ".join(page.split())


@pytest.mark.asyncio
async def test_base_url(index_path):
    datasette = Datasette([str(index_path)], settings={"base_url": "/prefix/"})
    html = unescape((await datasette.client.get("/run/prompt_groups?_facet_passrate=pass_rate")).text)
    assert "/prefix/run/prompt_groups?_facet_passrate=pass_rate&pass_rate=0" in html


@pytest.mark.asyncio
async def test_a_facet_of_recorded_values_counts_every_row(tmp_path):
    rows = [{"env": env, "reward": 1} for env in ("math", "math", "code", None, "null", None, None)]
    datasette = Datasette([str(make_index(tmp_path / "run.sqlite", rows))])
    facets = await facets_of(datasette, "/run/trajectories.json")
    assert counts_of(facets["env"]) == {"math": 2, "code": 1, "null": 1, "not recorded": 3}
    assert facets["env"]["truncated"] is False
    for name in ("env", "split", "success", "stop_condition", "group_pass_rate"):
        assert sum(counts_of(facets[name]).values()) == len(rows), name
    for value in facets["env"]["results"]:
        data = (await datasette.client.get(local(value["toggle_url"]))).json()
        assert len(data["rows"]) == value["count"]
        [chosen] = (await facets_of(datasette, local(value["toggle_url"])))["env"]["results"]
        assert (chosen["label"], chosen["selected"]) == (value["label"], True)
        assert "env" not in urlsplit(chosen["toggle_url"]).query


@pytest.mark.asyncio
async def test_what_is_not_recorded_is_counted_though_there_are_more_values(tmp_path):
    rows = [*({"env": f"e{n:02}"} for n in range(7)), *[{"env": None}] * 2, {"env": "e03"}]
    datasette = Datasette([str(make_index(tmp_path / "run.sqlite", rows))], settings={"default_facet_size": 3})
    facet = (await facets_of(datasette, "/run/trajectories.json"))["env"]
    assert counts_of(facet) == {"e03": 2, "e00": 1, "e01": 1, "not recorded": 2}
    assert facet["truncated"] is True
    facet = (await facets_of(datasette, "/run/trajectories.json?_facet_size=7"))["env"]
    assert (len(facet["results"]), facet["truncated"]) == (8, False)


@pytest.mark.asyncio
async def test_groups_without_two_rewards_are_told_from_those_that_give_a_signal(tmp_path):
    rows = [{"group": group, "reward": reward} for group, reward in (("a", 0), ("a", 1), ("b", 1), ("b", 1), ("c", 1))]
    datasette = Datasette([str(make_index(tmp_path / "run.sqlite", rows))])
    facet = (await facets_of(datasette, "/run/prompt_groups.json"))["zero_variance"]
    assert counts_of(facet) == {"0": 1, "1": 1, "fewer than two, or no reward": 1}
