"""Names that others write behind an address pass on every page; a typing error of one of ours is refused there."""

from __future__ import annotations

import pytest
from datasette.app import Datasette

from rltracer_sqlite.cli.serve import browse_config
from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import refresh_text

from .conftest import get
from .html import links

pytestmark = pytest.mark.asyncio
OWN = "/-/rltracer/run"
# Of each page: its address, and one of its options (or filters) with a letter left out.
PAGES = {
    f"{OWN}/?": "strt",
    f"{OWN}/run/1?": "splt",
    f"{OWN}/run/1/charts?": "evn",
    f"{OWN}/run/1/charts/reward?": "step_gte",
    f"{OWN}/run/1/charts/reward.json?": "windw",
    f"{OWN}/step/1/1?": "pass_rat__gte",
    f"{OWN}/group/1?": "succes",
    f"{OWN}/trajectory/1?": "veiw",
    f"{OWN}/trajectory/1.json?": "brnch",
    f"{OWN}/trajectory/1/record?": "prety",
    f"{OWN}/compare?a=1&b=2&": "a_brnch",
    f"{OWN}/search?q=pick&": "sucess",
    f"{OWN}/export?": "_targt",
    f"{OWN}/browse?": "agan",
    f"{OWN}/browse/~2E?": "strt",
    f"{OWN}/browse/~2E/1?": "agin",
    "/run/trajectories.sft?": "sucess",
}
OF_OTHERS = (
    "utm_source=mail&utm_medium=&utm_campaign=x&fbclid=1&gclid=2&msclkid=3&_ga=4&_=1712000000"
    "&_facet=env&_facet_size=3&_nofacet=1&_nosuggest=1&_labels=on&_shape=objects&_trace=1&_ttl=0&_col=id&_next=5"
)


@pytest.fixture
def datasette(folder):
    connection = open_for_writing(folder / "run.sqlite")
    refresh_text(connection, Roots([folder]))
    finish_writing(connection)
    config = browse_config(folder / "run", folder / "run.sqlite")
    return Datasette([str(folder / "run.sqlite")], metadata=config)


@pytest.mark.parametrize("page", PAGES)
async def test_what_others_append_is_let_pass(datasette, page):
    response = await datasette.client.get(f"{page}{OF_OTHERS}")
    assert response.status_code in (200, 302), response.text[-300:]
    assert "utm_" not in response.text.partition('<div class="reading"')[2]  # and no link of ours carries it on


@pytest.mark.parametrize("page", PAGES)
async def test_a_typing_error_is_refused_and_what_is_similar_named(datasette, page):
    response = await datasette.client.get(f"{page}{PAGES[page]}=1")
    assert response.status_code == 400
    assert PAGES[page].partition("__")[0] in response.text
    assert "similar: " in response.text


@pytest.mark.parametrize("name", ["_where", "_search", "_search_preview", "_through"])
@pytest.mark.parametrize("page", ["step/1/1", "group/1", "trajectory/1", "search"])
async def test_a_filter_that_only_datasette_has_is_refused(datasette, page, name):
    said = await get(datasette, f"{OWN}/{page}?{name}=1", 400)
    assert f"This page cannot filter by {name}; the tables of Datasette can." in said


async def test_a_column_of_such_a_name_is_a_filter(tmp_path):
    from tests.index_factory import make_index

    rows = [{"reward": 1.0, "metrics.kept": number} for number in range(2)]
    datasette = Datasette([str(make_index(tmp_path / "run.sqlite", rows))])
    page = await get(datasette, f"{OWN}/group/1?metric_kept=1&utm_source=x")
    assert links(page, "×without metric_kept = 1")
