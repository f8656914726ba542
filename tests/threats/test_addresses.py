"""Whatever stands in an address, or is the name of something, is answered with a page or one sentence."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from datasette.app import Datasette

from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import refresh_text
from tests.indexing import index, value
from tests.plugin.conftest import traces, write_run

OWN = "/-/rltracer/run"


@pytest.fixture
def full_text(datasette: Datasette, tmp_path: Path) -> Datasette:
    """Return the usual run with its full text."""
    connection = open_for_writing(tmp_path / "run.sqlite")
    refresh_text(connection, Roots([tmp_path]))
    finish_writing(connection)
    return datasette


ODD_VALUES = (
    "9" * 100,
    "-1",
    "1e9",
    "%00",
    "%ff",
    "\u202e",
    "1;drop table runs",
    "' or 1=1 --",
    "%0d%0aX-Evil:%201",
    "",
)
READING = ("with", "start", "full", "message", "branch", "view", "lens", "find", "words", "pretty")
FILTERS = ("id__in", "reward__gt", "success__isnull", "step__arraycontains", "split", "env", "step__gte", "_sort")
CHARTS = ("split", "env", "step", "step__gte", "step__lte", "_window")
# Of each page: what its address can ask for; another name would have it refused before anything of it is read.
ASKED = {
    "/": ("start",),
    "/run/1": ("start", *CHARTS),
    "/step/1/1": ("start", "_size", "pass_rate__gt", "env", "_sort"),
    "/group/1": (*READING, *FILTERS),
    "/prompt/1/1": ("split", "env", "start"),
    "/trajectory/1": (*READING, *FILTERS),
    "/trajectory/1.json": (*READING, *FILTERS),
    "/trajectory/1/record": (*READING, *FILTERS),
    "/compare": ("a", "b", "group", "a_branch", "b_branch"),
    "/search": ("q", "start", *FILTERS),
    "/export": ("_seed", "_per_prompt", "_field", "_table", "_preview", *FILTERS),
    "/run/1/charts": CHARTS,
    "/run/1/charts/reward.json": CHARTS,
    "/live": ("start",),
}


@pytest.mark.asyncio
async def test_t20_whatever_stands_in_an_address_is_answered(datasette: Datasette) -> None:
    for odd in ODD_VALUES:
        for path, names in ASKED.items():
            query = "&".join(f"{name}={odd}&{name}={odd}" for name in names)
            response = await datasette.client.get(f"{OWN}{path}?{query}", follow_redirects=True)
            assert response.status_code in (200, 400, 404, 413), (odd, path, response.text[-300:])
            assert "has no option" not in response.text, path
            assert "x-evil" not in response.headers


FILTERED = ("/step/1/1?", "/group/1?", "/trajectory/1?", "/search?q=pick&")


@pytest.mark.asyncio
async def test_t20_a_filter_that_its_column_does_not_take_is_refused(full_text: Datasette) -> None:
    for path in FILTERED:
        response = await full_text.client.get(f"{OWN}{path}env__arraycontains=x")
        assert response.status_code == 400
        assert "A filter in this address cannot be used: malformed JSON." in response.text


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("env__in=" + "1," * 3_000, 400, "too long for a page"),
        ("env__like=" + "%25" * 2_000, 400, "too long for a page"),
        ("find=" + "x" * 17_000, 414, "address is too long"),
        ("env=" + "x" * 17_000, 414, "address is too long"),
    ],
    ids=["a list", "a pattern", "no filter", "a value"],
)
async def test_t20_each_link_of_a_page_carries_its_filters_so_they_are_bounded(
    full_text: Datasette, query: str, status: int, said: str
) -> None:
    for path in FILTERED:
        response = await full_text.client.get(f"{OWN}{path}{query}")
        assert (response.status_code, said in response.text) == (status, True)


@pytest.mark.asyncio
async def test_t20_odd_numbers_and_ids_are_answered(datasette: Datasette) -> None:
    for path in (f"/run/{'9' * 30}", "/step/1/-0", "/step/1/99999999999999999999", "/trajectory/00001",
                 "/t/%00/%0d%0a", "/t/run/..%2f..%2fetc", "/group/٣", f"/prompt/1/{'9' * 30}",
                 f"/compare/1/{'9' * 30}"):  # fmt: skip
        response = await datasette.client.get(OWN + path, follow_redirects=True)
        assert response.status_code in (200, 400, 404), path


@pytest.mark.asyncio
async def test_t15_a_download_has_a_harmless_name(tmp_path: Path) -> None:
    write_run(tmp_path / "run", traces())
    file = tmp_path / 'a"; x=\u202e<b>.sqlite'
    index(file, tmp_path / "run")
    datasette = Datasette([str(file)])
    [name] = [name for name in datasette.databases if name not in ("_internal", "_memory")]
    response = await datasette.client.get(datasette.urls.table(name, "trajectories", format="sft"))
    assert response.status_code == 200
    assert re.fullmatch(r'attachment; filename="[A-Za-z0-9_-]+\.sft\.jsonl"', response.headers["content-disposition"])


@pytest.mark.asyncio
async def test_t15_a_column_of_any_name_is_quoted(datasette: Datasette, tmp_path: Path) -> None:
    names = ['reward_"; drop table runs; --', "reward_]<x-y>", "reward_'", "info_\u202e"]
    connection = sqlite3.connect(tmp_path / "run.sqlite")
    for number, name in enumerate(names):
        quoted = '"' + name.replace('"', '""') + '"'
        connection.execute(f"alter table trajectories add column {quoted} real")
        connection.execute(f"update trajectories set {quoted} = 1.0")
        field = (f"rewards.<x-y>{number}.score", name, "number", 4)
        connection.execute("insert into fields (path, column_name, kind, trajectories) values (?, ?, ?, ?)", field)
    connection.commit()
    connection.close()
    for path in ("/group/2", "/trajectory/1", "/compare?a=2&b=3", "/search?q=x"):
        response = await datasette.client.get(OWN + path)
        assert response.status_code == 200
        assert "<x-y>" not in response.text
    assert value(tmp_path / "run.sqlite", "select count(*) from runs") == 1
