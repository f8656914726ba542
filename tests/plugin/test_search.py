"""The search of an index, end to end: what it finds, how it shows it, and what it says when it cannot."""

from __future__ import annotations

import html
import re
import sqlite3
from contextlib import closing
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from datasette.app import Datasette
from datasette.utils import parse_metadata

from datasette_rltracer.search_snippets import marked
from rltracer_sqlite import search_text
from rltracer_sqlite.cli.metadata import command as metadata
from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import refresh_text, remove_text
from tests.commands import rltracer
from tests.indexing import index
from tests.layouts.records import message, trace

from .conftest import TRACES, get, write_run
from .hostile import PAYLOADS, Elements, hostile_trace
from .html import links, words

pytestmark = pytest.mark.asyncio
SEARCH = "/-/rltracer/run/search"


def make_searchable(folder):
    connection = open_for_writing(folder / "run.sqlite")
    refresh_text(connection, Roots([folder]))
    finish_writing(connection)


@pytest.fixture
def searchable(folder):
    make_searchable(folder)
    return folder


@pytest.fixture
def datasette(searchable, serve):
    return serve()


def hits(page):
    """Return (address, words) of the results of a page."""
    found = re.findall(r"<li data-row>(.*?)</li>", page, re.DOTALL)
    return [(html.unescape(re.search(r'href="([^"]+)"', hit)[1]), words(hit)) for hit in found]


@pytest.mark.parametrize("is_searchable", [True, False])
async def test_printed_metadata_has_the_search_where_there_is_one(folder, is_searchable):
    if is_searchable:
        make_searchable(folder)
    printed = CliRunner().invoke(metadata, [str(folder / "run.sqlite")], catch_exceptions=False).output
    tables = parse_metadata(printed)["databases"]["run"]["tables"]
    assert tables["trajectories"].get("fts_table") == ("trajectories_text" if is_searchable else None)
    assert tables.get("trajectories_text_digests", {}).get("hidden", False) == is_searchable


async def test_results_carry_ids_and_a_search_without_any_says_what_helps(datasette):
    page = await get(datasette, f"{SEARCH}?q=gaskets")
    assert "trajectory 1 counted" in words(page)
    assert '<select name="split"><option value="">any</option><option value="train">train</option></select>' in page
    nothing = words(await get(datasette, f"{SEARCH}?q=absent+words&split=train"))
    assert "Looked for absent words in prompts and messages. All words have to occur in one trajectory" in nothing
    assert "write OR between them, or word* for all that begin so. Search without the filters" in nothing
    assert '<option value="x" selected>x</option>' in await get(datasette, f"{SEARCH}?q=absent&split=x")


@pytest.mark.parametrize("asked", ["success=unscored", "success__isnull=1"])
async def test_the_form_has_the_outcome_unscored_and_hands_it_on_as_the_filter_of_the_table(datasette, asked):
    page = await get(datasette, f"{SEARCH}?q=pick&{asked}")
    assert '<option value="unscored" selected>unscored</option></select>' in page
    assert '<input type="hidden" name="success' not in page
    assert "success__isnull=1" in re.search(r'href="([^"]*/trajectories\?[^"]*)"', page)[1]
    assert "success=unscored" not in page


async def test_page_terminal_and_python_count_the_same(datasette, searchable):
    assert search_text(searchable / "run.sqlite", "pick", limit=1).total == 3
    assert "3 trajectories" in words(await get(datasette, f"{SEARCH}?q=pick"))
    said = rltracer("search", searchable / "run.sqlite", "pick", "--limit", 1).stdout
    assert said.splitlines()[-1] == "1 of 3 trajectories"


@pytest.mark.parametrize(
    ("query", "trajectories"),
    [
        ("q=gaskets", [1]),
        ("q=%22sum+first%22", [1]),  # reasoning
        ("q=stock.csv", [1]),  # arguments and a result
        ("q=right", [3, 2]),
        ("q=pick&_sort=id", [2, 3, 4]),
        ("q=pick&_sort_desc=reward", [3, 2, 4]),
        ("q=pick&success=1", [3]),
        ("q=pick&success__isnull=1", [4]),
        ("q=pick&success=unscored", [4]),
        ("q=pick&reward__gte=0.5&reward__lt=1", [2]),
        ("q=pick&step=1&split=train", [4, 3, 2]),
        ("q=pick&step=7", []),
        ("q=absent", []),
        ("q=pick&success=&split=", [4, 3, 2]),
    ],
)
async def test_what_is_found(datasette, query, trajectories):
    found = hits(await get(datasette, f"{SEARCH}?{query}"))
    assert [int(re.search(r"/trajectory/(\d+)", address)[1]) for address, _ in found] == trajectories


@pytest.mark.parametrize(
    ("asked", "place"),
    [("%22sum+first%22", "1 match, this one in message 3"), ("sum+first", "words, the shown ones in message 3")],
)
async def test_a_result_shows_the_match_and_leads_to_it(datasette, asked, place):
    page = await get(datasette, f"{SEARCH}?q={asked}")
    [(address, said)] = hits(page)
    assert "Sum first, then compare." in re.sub("</?mark>", "", page)
    assert f"{place} (assistant)" in said  # of one branch, which needs no number
    target = await get(datasette, address.partition("#")[0])
    anchor = address.partition("#")[2]
    assert f'<mark id="{anchor}">Sum first</mark>' in target


async def test_a_long_prompt_is_cut_between_words_and_says_so(folder, serve):
    prompt = "Cuánto cuesta la bicicleta " * 8
    write_run(folder / "run", [trace([message("user", prompt), message("assistant", "nada")], id="long")])
    index(folder / "run.sqlite", folder / "run")
    make_searchable(folder)
    page = await get(serve(), f"{SEARCH}?q=nada")
    [title] = re.findall(r'class="hit-head">.*<a [^>]*>(.*)</a>', page)
    assert title.endswith(" Cuánto…")
    assert prompt.startswith(title[:-1])


async def test_the_branch_of_a_match_is_led_to(datasette):
    [(address, said)] = hits(await get(datasette, f"{SEARCH}?q=left"))
    assert "branch=1" in address
    assert "this one in branch 1, message 2 (assistant)" in said
    assert ">left</mark>" in await get(datasette, address.partition("#")[0])


@pytest.mark.parametrize("form", ["", "&success=&split=&step__gte=&step__lte="], ids=["bare", "as the form sends it"])
async def test_the_summary_counts_all_that_match(datasette, form):
    page = words(await get(datasette, f"{SEARCH}?q=pick{form}"))
    assert "3 trajectories" in page
    assert "pass rate 0.500 1 of 2, 1 unscored" in page
    assert "Success is reward >= 1 (made of correct, format and right)." in page


@pytest.mark.parametrize("query", ["AND", '"open', "(a", "a NOT", "NEAR(a", "x" * 1001])
async def test_a_search_that_cannot_be_asked_is_one_sentence(datasette, query):
    response = await datasette.client.get(SEARCH, params={"q": query})
    assert response.status_code == 400
    [sentence] = re.findall(r'role="alert">([^<]+)<', response.text)
    assert sentence.endswith(".")
    assert "Traceback" not in response.text


@pytest.mark.parametrize("query", ["q=pick&step=%00", "q=pick&reward__gte=x", "q=pick&nothing=1", "q=pick&start=x"])
async def test_filters_are_only_text(datasette, query):
    assert (await datasette.client.get(f"{SEARCH}?{query}")).status_code in (200, 400)


async def test_without_full_text_the_page_says_how_to_make_it(folder, serve):
    page = await get(serve(), f"{SEARCH}?q=pick")
    assert "rltracer fts run.sqlite" in words(page)
    assert str(folder) not in page
    assert "<li data-row>" not in page


async def test_full_text_that_is_made_or_removed_while_serving_is_noticed(folder, serve):
    datasette = serve()
    assert "cannot be searched yet" in await get(datasette, f"{SEARCH}?q=pick")
    make_searchable(folder)
    assert len(hits(await get(datasette, f"{SEARCH}?q=pick"))) == 3
    assert "_search" in await get(datasette, "/run/trajectories")
    connection = open_for_writing(folder / "run.sqlite")
    remove_text(connection)
    finish_writing(connection)
    assert "cannot be searched yet" in await get(datasette, f"{SEARCH}?q=pick")


async def test_what_came_later_is_said(searchable, serve):
    with (searchable / "run" / TRACES).open("a") as file:
        file.write((searchable / "run" / TRACES).read_text().splitlines()[0].replace('"counted"', '"later"') + "\n")
    index(searchable / "run.sqlite", searchable / "run")
    page = words(await get(serve(), f"{SEARCH}?q=gaskets"))
    assert "4 of the 5 trajectories" in page
    assert "1 trajectory came later" in page


async def test_the_table_page_searches_too(datasette):
    page = await get(datasette, "/run/trajectories?_search=gaskets")
    assert page.count("/-/rltracer/run/trajectory/1") >= 1
    assert "/-/rltracer/run/trajectory/2" not in page
    [address] = links(await get(datasette, f"{SEARCH}?q=pick+NOT+left"), "as a table")
    table = await get(datasette, address)
    assert "/-/rltracer/run/trajectory/3" in table
    assert "/-/rltracer/run/trajectory/2" not in table


async def test_the_tables_of_the_full_text_are_hidden(datasette):
    response = await datasette.client.get("/run.json")
    shown = {table["name"] for table in response.json()["tables"] if not table["hidden"]}
    assert not {name for name in shown if name.startswith("trajectories_text")}


async def test_the_search_needs_permission_to_view_the_trajectories(searchable, serve):
    datasette = serve(metadata={"databases": {"run": {"tables": {"trajectories": {"allow": {"id": "root"}}}}}})
    assert "Pick one." not in await get(datasette, f"{SEARCH}?q=pick", 403)
    cookies = {"ds_actor": datasette.sign({"a": {"id": "root"}}, "actor")}
    assert "Pick one." in await get(datasette, f"{SEARCH}?q=pick", cookies=cookies)


async def test_links_stay_below_the_base_url(searchable, serve):
    page = await get(serve(settings={"base_url": "/prefix/"}), f"{SEARCH}?q=pick&success=1")
    found = re.findall(r'(?:href|src|action)="(/[^"]*)', page)
    assert found
    assert all(address.startswith("/prefix/") for address in found)


async def test_every_link_of_the_page_leads_somewhere(datasette):
    page = await get(datasette, f"{SEARCH}?q=pick&success=1")
    for address in {html.unescape(link) for link in re.findall(r'href="(/[^"#]+)', page)}:
        assert (await datasette.client.get(address)).status_code in (200, 302), address


async def test_a_record_that_has_gone_leaves_the_row(datasette, searchable):
    (searchable / "run" / TRACES).unlink()
    [(address, said)] = hits(await get(datasette, f"{SEARCH}?q=gaskets"))
    assert "cannot be read now" in said
    assert address == "/-/rltracer/run/trajectory/1"


async def test_a_record_too_long_for_a_list_is_not_read(datasette, monkeypatch):
    monkeypatch.setattr("rltracer_sqlite.search.hits.LONGEST_RECORD", 100)
    [(_, said)] = hits(await get(datasette, f"{SEARCH}?q=gaskets"))
    assert "too long to be read for a list" in said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("sum+first", 'As a phrase: "sum first" in 1 trajectory.'),
        ("first+sum", 'Nowhere do they stand together, as "first sum".'),
        ('"sum+first"', None),
        ("gaskets", None),
    ],
)
async def test_the_matches_of_words_are_told_from_those_of_their_phrase(datasette, asked, said):
    page = await get(datasette, f"{SEARCH}?q={asked}&step=1&_sort=id")
    [first, *_] = [text for _, text in hits(page)]
    assert ("matching word" in first) == (said is not None)
    assert ("Each of the words is a match by itself" in page) == (said is not None)
    if said:
        assert said in words(page)
        assert links(page, '"sum first"') == [f"{SEARCH}?q=%22sum+first%22&step=1&_sort=id"] * ("As a phrase" in said)


async def test_results_come_in_pages(tmp_path):
    write_run(tmp_path / "run", [trace([message("user", f"item {count}")], id=f"t{count}") for count in range(45)])
    index(tmp_path / "run.sqlite", tmp_path / "run")
    make_searchable(tmp_path)
    datasette, seen, address = Datasette([str(tmp_path / "run.sqlite")]), [], f"{SEARCH}?q=item"
    while address:
        page = await get(datasette, address)
        seen += [found for found, _ in hits(page)]
        address = next(iter(links(page, f"next: {45 - len(seen)} more")), None)
    assert len(set(seen)) == 45


@pytest.mark.parametrize("text", PAYLOADS)
async def test_a_payload_in_a_result_or_in_the_question_is_only_text(tmp_path, text):
    said = trace([message("user", f"needle {text} haystack"), message("assistant", text)], stop_condition=text)
    write_run(tmp_path / "run", [said, hostile_trace(text)])
    index(tmp_path / "run.sqlite", tmp_path / "run")
    make_searchable(tmp_path)
    datasette = Datasette([str(tmp_path / "run.sqlite")])
    for question in ("needle", text.replace("\ud800", "?")):
        page = (await datasette.client.get(SEARCH, params={"q": question})).text
        parser = Elements()
        parser.feed(page[page.index('<div class="reading">') :])
        for tag, attributes in parser.found:
            assert tag not in {"img", "svg", "iframe", "object", "template", "style"}
            assert not any(name.startswith("on") for name in attributes)
            assert attributes.get("href", "/").startswith(("/", "#", "https://datasette.io/"))
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(2, 5)], "a <mark>&lt;b&gt;</mark> c"),
        ([(0, 1), (6, 7)], "<mark>a</mark> &lt;b&gt; <mark>c</mark>"),
        ([], "a &lt;b&gt; c"),
        ([(0, 99)], "<mark>a &lt;b&gt; c</mark>"),
    ],
)
async def test_marks_stand_around_escaped_text(spans, expected):
    assert str(marked("a <b> c", spans)) == expected


@pytest.fixture
def in_scripts(tmp_path):
    said = ["2024年はうるう年です", "请数一数GPU显存", "모델을 학습", "ไม่กินข้าว"]
    write_run(tmp_path / "run", [trace([message("user", text)], id=f"t{n}") for n, text in enumerate(said)])
    index(tmp_path / "run.sqlite", tmp_path / "run")
    make_searchable(tmp_path)
    return Datasette([str(tmp_path / "run.sqlite")])


@pytest.mark.parametrize(
    ("asked", "number", "mark"),
    [
        ("うるう*", 1, "うるう"),
        ("gpu显存", 2, "GPU显存"),
        ("모델", 3, "모델"),
        ("กิน", 4, "กิน"),
        ("２０２４年", 1, "2024年"),
    ],
    ids=[1, 2, 3, 4, 5],
)
async def test_any_part_of_a_script_without_spaces_is_found_and_led_to(in_scripts, asked, number, mark):
    page = await get(in_scripts, f"{SEARCH}?q={quote(asked)}")
    [(address, _)] = hits(page)
    assert f"/trajectory/{number}?" in address
    assert f"<mark>{mark}</mark>" in page
    assert f'<mark id="found-0">{mark}</mark>' in await get(in_scripts, address.partition("#")[0])
    [table] = links(page, "as a table")
    for listed in (table, f"/run/trajectories?_search={quote(asked.strip('*'))}"):
        found = set(re.findall(r"/-/rltracer/run/trajectory/(\d+)", await get(in_scripts, listed)))
        assert found == {str(number)}


async def test_other_words_of_ones_own_are_searched_as_before(folder, serve):
    with closing(sqlite3.connect(folder / "run.sqlite")) as connection:
        connection.executescript(
            "create table notes (id integer primary key, note text);"
            "insert into notes values (1, 'うるう年 one'), (2, 'two');"
            'create virtual table notes_fts using fts5(note, content="notes");'
            "insert into notes_fts (notes_fts) values ('rebuild');"
        )
    page = await get(serve(), f"/run/notes?_search={quote('うるう年')}")
    assert "うるう年 one" in page
    assert ">two<" not in page


async def test_full_text_of_an_earlier_version_is_told(searchable, serve):
    with closing(sqlite3.connect(searchable / "run.sqlite")) as connection:
        connection.execute("drop table trajectories_text")
        connection.execute("create virtual table trajectories_text using fts5(body, content='')")
    page = await get(serve(), f"{SEARCH}?q=pick")
    assert "was made by an earlier version, and is not searched. Whoever keeps it can make it anew: " in words(page)
    assert "rltracer fts run.sqlite" in words(page)
    assert "_search" not in await get(serve(), "/run/trajectories")
