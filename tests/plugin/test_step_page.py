"""The page of a step: groups under filters in Datasette's own words, handed on to the pages of the groups."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from html import unescape

import pytest
from datasette.app import Datasette

from tests.export_runs import rollout, write_steps
from tests.index_factory import make_index
from tests.indexing import index

from .conftest import get
from .html import links, part, query_of, sql_link, table_rows, words
from .rows import sql_rows, table_rows_of

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/index/step/1/3"
GROUP = "/-/rltracer/index/group/"
GROUPS = [("a", 4, "math"), ("b", 0, "math"), ("c", 2, "code"), ("d", 3, "code"), ("e", None, "code")]


def trajectories():
    for prompt, passed, env in GROUPS:
        for number in range(4):
            reward = None if passed is None else float(number < passed)
            yield {"step": 3, "prompt": prompt, "env": env, "reward": reward, "completion_tokens": 100}
    yield {"step": 2, "prompt": "earlier", "reward": 1.0}
    yield {"step": None, "prompt": "without a step", "reward": 1.0}


async def prompts(datasette, query=""):
    return [row[0].split()[0] for row in table_rows(await get(datasette, f"{PAGE}{query}"), "groups")]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "abcde"),
        ("?pass_rate__gte=0.5", "acd"),
        ("?pass_rate__gt=0&pass_rate__lt=1", "cd"),
        ("?zero_variance=1", "ab"),
        ("?env=code&_sort=pass_rate", "cde"),
        ("?_sort_desc=pass_rate", "adcbe"),
        ("?_sort=pass_rate", "bcdae"),
        ("?pass_bucket__isnull=1", "e"),
        ("?env__in=math,code&_sort_desc=env", "abcde"),
        ("?env=&split=&pass_rate__gte=&pass_rate__lt=", "abcde"),
        ("?run_id=99&step=99", "abcde"),
    ],
)
async def test_filters_mean_what_they_mean_on_a_table(datasette, query, found):
    assert await prompts(datasette, query) == list(found)


@pytest.mark.parametrize("query", ["", "?pass_rate__gte=0.5", "?env=code&_sort_desc=pass_rate", "?zero_variance=0"])
async def test_the_sql_and_the_table_give_exactly_the_rows(datasette, query):
    page = await get(datasette, f"{PAGE}{query}")
    found = [row[0].split()[0] for row in table_rows(page, "groups")]
    assert [row["preview"] for row in await sql_rows(datasette, sql_link(page, "groups"))] == found
    [table] = links(page, "as a table")
    assert len(await table_rows_of(datasette, table)) == len(found)


async def test_filters_are_said_and_can_be_taken_off(datasette):
    page = await get(datasette, f"{PAGE}?pass_rate__gte=0.5&env=code")
    assert "where pass_rate ≥ 0.5" in words(page)
    [without] = links(page, "×without pass_rate ≥ 0.5")
    assert query_of(without) == {"env": "code"}


async def test_a_group_is_reached_under_the_filters(datasette):
    page = await get(datasette, f"{PAGE}?zero_variance=0&_sort_desc=pass_rate")
    [address] = links(page, "d")
    assert query_of(address) == {"run_id": "1", "step": "3", "zero_variance": "0", "_sort_desc": "pass_rate"}
    assert "group 1 of 2" in words(await get(datasette, address))


async def test_the_headline_counts_the_whole_step(datasette):
    page = words(await get(datasette, f"{PAGE}?env=math"))
    assert "Step 3 pass rate 0.562 9 of 16, 4 unscored, mean reward 0.562" in page
    assert "20 trajectories" in page


async def test_each_group_says_how_many_trajectories_it_has(datasette):
    rows = table_rows(await get(datasette, PAGE), "groups")
    assert [row[3] for row in rows] == ["1.000 4 of 4", "0.000 0 of 4", "0.500 2 of 4", "0.750 3 of 4", "– 4 unscored"]


async def test_groups_of_train_come_before_those_of_evaluation_as_do_their_neighbours(tmp_path):
    splits = [("eval", "a"), ("train", "b"), ("test", "c"), ("train", "d"), ("eval", "e")]
    rows = [{"step": 3, "split": split, "prompt": prompt, "reward": 1.0} for split, prompt in splits]
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    page = await get(datasette, PAGE)
    assert [row[0].split()[0] for row in table_rows(page, "groups")] == list("bdaec")
    assert await prompts(datasette, "?start=2&_size=2") == list("ae")
    assert await prompts(datasette, "?_sort=reward_mean") == list("abcde")
    # The groups d and a, where the splits part.
    for group, words_of_link, other in ((4, "next group", 1), (1, "previous group", 4)):
        [address] = links(await get(datasette, f"{GROUP}{group}"), words_of_link)
        assert address.partition("?")[0] == f"{GROUP}{other}"


async def test_the_headline_keeps_the_splits_apart(tmp_path):
    rows = [{"step": 3, "split": split, "reward": float(split == "eval")} for split in ("train", "train", "eval")]
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    page = words(await get(datasette, PAGE))
    assert "train pass rate 0.000 0 of 2, mean reward 0.000 eval pass rate 1.000 1 of 1, mean reward 1.000" in page
    assert "3 trajectories" in page
    page = words(await get(datasette, f"{PAGE}?split=eval"))
    assert "Step 3 pass rate 1.000 1 of 1, mean reward 1.000" in page
    assert "1 trajectory" in page


async def test_equal_rewards_have_no_spread(tmp_path):
    rows = [{"step": 3, "reward": 1.1} for _ in range(6)]  # whose mean is not 1.1, by rounding
    page = await get(Datasette([str(make_index(tmp_path / "index.sqlite", rows))]), PAGE)
    assert table_rows(page, "groups")[0][5] == "0.000"


@pytest.mark.parametrize(
    ("kind", "said"),
    [("policy version", "one policy version"), ("<b>epoch", "one <b>epoch"), ("step", None), (None, None)],
)
async def test_what_a_step_counts_is_said(tmp_path, kind, said):
    path = make_index(tmp_path / "index.sqlite", trajectories())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update runs set step_kind = ?", [kind])
    datasette = Datasette([str(path)])
    step, run = [words(await get(datasette, page)) for page in (PAGE, "/-/rltracer/index/run/1")]
    if said is None:
        assert "a step is one" not in step
        assert "each one" not in run
    else:
        assert f"with errors · a step is {said}" in step
        assert f"2 steps, each {said} ·" in run


@pytest.mark.parametrize(
    ("kinds", "columns"),
    [
        ({"a": (None, "eval"), "b": (None, "train")}, {"split": ["eval", "train"]}),
        ({"a": ("math", None), "b": (None, None)}, {"env": ["math", "–"]}),
        ({"a": ("math", "eval"), "b": ("<b>", None)}, {"env": ["math", "<b>"], "split": ["eval", "–"]}),
        ({"a": (None, None)}, {}),
    ],
)
async def test_env_and_split_stand_each_under_its_name_where_groups_record_it(tmp_path, kinds, columns):
    rows = [{"step": 3, "prompt": prompt, "env": env, "split": split} for prompt, (env, split) in kinds.items()]
    page = part(await get(Datasette([str(make_index(tmp_path / "index.sqlite", rows))]), PAGE), "groups")
    names = [words(name) for name in re.findall(r"<th[ >].*?</th>", page)]
    found = list(zip(*sorted(table_rows(page, "groups")), strict=True))
    assert {name: list(found[names.index(name)]) for name in ("env", "split") if name in names} == columns
    assert re.findall('data-label="(env|split)"', page) == [*columns] * len(kinds)


async def test_groups_by_pass_rate_lead_to_those_groups(datasette):
    page = await get(datasette, PAGE)
    assert "groups by pass rate · no signal 2 of 4" in words(page)
    bins = page[page.index("Prompt groups by pass rate") :]
    addresses = links(bins[: bins.index("</table>")], "1")
    found = [await prompts(datasette, address.removeprefix(PAGE)) for address in addresses]
    assert found == [["b"], ["c"], ["d"], ["a"], ["e"]]


async def test_steps_lead_to_their_neighbours_under_the_same_filters(datasette):
    page = await get(datasette, f"{PAGE}?env=math")
    assert links(page, "previous step") == ["/-/rltracer/index/step/1/2?env=math"]
    assert links(page, "next step") == []


async def test_trajectories_without_a_step_have_a_page(datasette):
    page = await get(datasette, "/-/rltracer/index/step/1/none")
    assert "No step pass rate" in words(page)
    assert [row[0] for row in table_rows(page, "groups")] == ["without a step prompt 7 000000000000"]


async def test_the_form_keeps_what_it_has_no_field_for(datasette):
    page = await get(datasette, f"{PAGE}?pass_rate__gte=0.5&env=code&_sort=env")
    assert '<input type="hidden" name="pass_rate__gte" value="0.5">' in page
    assert '<input type="hidden" name="_sort" value="env">' in page
    assert '<option value="code" selected>' in page
    assert 'type="hidden" name="env"' not in page


async def test_many_groups_come_in_pages(tmp_path):
    rows = ({"step": 3, "prompt": f"p{number:04}", "reward": 1.0} for number in range(450))
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    page, seen = await get(datasette, PAGE), []
    assert "200 of 450 prompt groups shown" in words(page)
    while page:
        seen += [row[0].split()[0] for row in table_rows(page, "groups")]
        later = [address for text in ("next: 250 more", "next: 50 more") for address in links(page, text)]
        page = await get(datasette, later[0]) if later else ""
    assert seen == [f"p{number:04}" for number in range(450)]
    assert len(table_rows(await get(datasette, f"{PAGE}?_size=450"), "groups")) == 450


@pytest.mark.parametrize("query", ["pass_rate__in=[", "id__gt=" + "9" * 40, "env__in=[[1]]", "env__in=[{}]"])
async def test_a_filter_that_cannot_be_used_is_refused(datasette, query):
    await get(datasette, f"{PAGE}?{query}", 400)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("nope__gte=1", "prompt_groups has no column nope"),
        ("pass_rat=1", "prompt_groups has no column pass_rat; similar: pass_rate"),
        ("pass_rate__gteq=1", "pass_rate__gteq: there is no filter __gteq; similar: __gte"),
        ("_sort=reward", "prompt_groups has no column reward to sort by"),
        ("_siz=3", "There is no option _siz; similar: _size"),
    ],
)
@pytest.mark.parametrize("page", [PAGE, "/-/rltracer/index/group/1", "/-/rltracer/index/trajectory/1"])
async def test_what_is_no_column_is_refused_and_not_left_out(datasette, page, query, sentence):
    if page == PAGE:
        assert sentence in unescape(await get(datasette, f"{page}?{query}", 400))
    elif not query.startswith(("_sort", "_siz")):
        found = unescape(await get(datasette, f"{page}?{query}", 400))
        assert sentence.partition(" has ")[2] in found


@pytest.mark.parametrize("path", [f"{PAGE}3", "/-/rltracer/index/step/9/3", "/-/rltracer/index/step/1/x"])
async def test_a_step_that_is_not_there_is_not_found(datasette, path):
    await get(datasette, path, 404)


async def test_files_that_are_gone_are_said(tmp_path):
    for step, split in ((1, "train"), (2, "train"), (2, "eval")):
        records = [rollout(f"{step}{split}{number}", split) for number in range(2)]
        write_steps(tmp_path / "run", {step: records}, split=split)
    file = tmp_path / "run/rollouts/step_2/eval/all/traces.jsonl"
    for _ in range(2):
        index(tmp_path / "run.sqlite", tmp_path / "run")
        datasette = Datasette([str(tmp_path / "run.sqlite")])
        pages = [await get(datasette, f"/-/rltracer/run/{path}") for path in ("step/1/2", "step/1/1", "run/1", "")]
        step, other, run, overview = (words(page) for page in pages)
        if file.exists():
            assert not any("gone" in said for said in (step, other, run, overview))
            file.unlink()
    assert "1 file of this step is gone since it was read." in step
    assert "2 of its 4 trajectories cannot be opened any more" in step
    assert ["· 2 cannot be opened" in row[0] for row in table_rows(pages[0], "groups")].count(True) == 1
    assert "gone" not in other
    assert [row[:2] for row in table_rows(pages[2], "steps")] == [
        ["2", "train"],
        ["2", "eval"],
        ["", "1 of 1 file gone since it was read; 2 of 2 trajectories cannot be opened"],
        ["1", "train"],
    ]
    assert "1 of 3 files gone since it was read" in run
    assert "1 of 3 files gone since it was read" in overview
