"""The pages of the runs below a folder: what they list, and how a step is read in the background."""

from __future__ import annotations

import html
import re
import threading

import pytest
from datasette.app import Datasette
from datasette.utils import tilde_encode

from datasette_rltracer.browse_folder import browser_of
from datasette_rltracer.browse_reader import DONE, FAILED, READING, WAITING, Reader
from rltracer_sqlite.cli.serve import browse_config, prepare_index
from tests.export_runs import rollout, write_steps
from tests.indexing import rows, value
from tests.small_runs import touch, write_step

from .conftest import BROWSE, get
from .hostile import PAYLOADS, Elements
from .html import links, words

pytestmark = pytest.mark.asyncio


async def read(datasette, address):
    """Open a step, wait until it has been read, and return where that leads."""
    response = await datasette.client.get(address)
    assert response.status_code == 202, response.text[:300]
    assert browser_of(datasette).reader.wait(60)
    response = await datasette.client.get(f"{address}?waited=1")
    assert response.status_code == 302, words(response.text)
    return response.headers["location"]


async def test_the_first_page_leads_to_the_runs(browse):
    response = await browse().client.get("/-/rltracer")
    assert (response.status_code, response.headers["location"]) == (302, BROWSE)


async def test_the_runs_are_listed(browse):
    page = await get(browse(), BROWSE)
    cells = [words(row) for row in re.findall(r"<tr data-row>(.*?)</tr>", page, re.DOTALL)]
    assert len(cells) == 3
    assert {cell.split()[0] for cell in cells[:2]} == {"team/first", "second"}
    assert cells[2].startswith("notes perhaps: only its content can tell")
    assert "1 – 2 2 steps" in " ".join(cells)
    assert all("not read" in cell for cell in cells)


async def test_every_page_of_a_run_leads_back_to_the_runs(folder):
    config = browse_config(folder / "run", folder / "run.sqlite", fts=False)
    datasette = Datasette([str(folder / "run.sqlite")], metadata=config)
    for page in ("", "/charts", "/charts/reward"):
        text = await get(datasette, f"/-/rltracer/run/run/1{page}")
        assert links(text[text.index('class="beside-crumbs"') :], "runs") == ["/-/rltracer/run/browse"]


async def test_files_that_tell_no_step_are_read_only_when_they_have_been(browse, runs):
    (runs / "chat").mkdir()
    line = '{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "reward": 1}'
    (runs / "chat/samples.jsonl").write_text(f"{line}\n")
    datasette = browse()
    [row] = re.findall(r"<tr data-row>(.*?)</tr>", await get(datasette, f"{BROWSE}/chat"), re.DOTALL)
    assert words(row).startswith("files that tell no step by their names")
    assert words(row).endswith("not read")
    await read(datasette, f"{BROWSE}/chat/none")
    [row] = re.findall(r"<tr data-row>(.*?)</tr>", await get(datasette, f"{BROWSE}/chat"), re.DOTALL)
    assert "read: 1 " in words(row)


async def test_a_format_that_is_not_read_yet_is_listed_and_said(browse, runs):
    touch(runs, "logs/toy.eval")
    datasette = browse()
    assert "logs Inspect AI logs, which this version does not read yet" in words(await get(datasette, BROWSE))
    await get(datasette, f"{BROWSE}/logs", 404)


async def test_a_run_is_looked_for_by_name(browse):
    page = await get(browse(), f"{BROWSE}?q=FIRST")
    assert re.findall(r'<td class="path"><a[^>]*>([^<]*)', page) == ["team/first"]
    assert "1 of 3 runs" in words(page)
    assert "No run of such a name" in await get(browse(), f"{BROWSE}?q=nothing")


async def test_a_new_run_is_found_when_asked_for(browse, runs):
    datasette = browse()
    await get(datasette, BROWSE)
    write_step(runs / "third", 1, "x")
    assert "third" not in words(await get(datasette, BROWSE))
    [again] = links(await get(datasette, BROWSE), "look again")
    assert "third" in words(await get(datasette, again))


async def test_a_step_is_read_when_it_is_opened(browse, tmp_path):
    datasette = browse()
    [address] = links(await get(datasette, f"{BROWSE}/{tilde_encode('team/first')}"), "step 2")
    location = await read(datasette, address)
    page = await get(datasette, location)
    assert "question of step 2" in page
    assert "question of step 1" not in page
    assert (
        rows(tmp_path / "index.sqlite", "select name, step from trajectories t join runs r on r.id = run_id")
        == [("team/first", 2)] * 2
    )
    listed = words(await get(datasette, f"{BROWSE}/{tilde_encode('team/first')}"))
    assert "1 of 2 steps read" in listed
    assert "step 2 train 1" in listed
    assert "read: 2 trajectories" in listed
    assert "1 step, 2 trajectories" in words(await get(datasette, BROWSE))


async def test_a_step_that_has_been_read_is_led_to_at_once(browse):
    datasette = browse()
    address = f"{BROWSE}/second/7"
    location = await read(datasette, address)
    response = await datasette.client.get(address)
    assert (response.status_code, response.headers["location"]) == (302, location)


async def test_what_is_new_in_a_step_is_read_when_it_is_opened_again(browse, runs, tmp_path):
    datasette = browse()
    await read(datasette, f"{BROWSE}/second/7")
    write_step(runs / "second", 7, "a third", "a fourth")
    await read(datasette, f"{BROWSE}/second/7")
    assert value(tmp_path / "index.sqlite", "select count(*) from trajectories") == 2


async def test_all_steps_can_be_read(browse, tmp_path):
    location = await read(browse(), f"{BROWSE}/{tilde_encode('team/first')}/all")
    assert re.fullmatch(r"/-/rltracer/index/run/\d+", location)
    assert value(tmp_path / "index.sqlite", "select count(distinct step) from trajectories") == 2


async def test_messages_can_be_made_searchable_as_they_are_read(browse):
    datasette = browse(fts=True)
    await read(datasette, f"{BROWSE}/second/7")
    assert "<mark>third</mark>" in await get(datasette, "/-/rltracer/index/search?q=third")


async def test_the_waiting_page_looks_again_by_itself(browse, monkeypatch):
    monkeypatch.setattr(Reader, "_work", lambda self: None)
    datasette = browse()
    page = await get(datasette, f"{BROWSE}/second/7", 202)
    [again] = re.findall(r'<meta http-equiv="refresh" content="1;url=([^"]+)"', page)
    assert html.unescape(again) == f"{BROWSE}/second/7?waited=1"
    assert "It is waiting." in words(page)
    assert "waiting behind 1 other step" in words(await get(datasette, f"{BROWSE}/{tilde_encode('team/first')}/1", 202))
    job = browser_of(datasette).reader.job("second", "7")
    job.state, job.read, job.total = READING, 500, 2000
    page = await get(datasette, f"{BROWSE}/second/7", 202)
    assert '<progress value="500" max="2000">' in page
    assert "500 bytes of 2.0 kB read" in words(page)


async def test_what_goes_wrong_is_said_and_can_be_tried_again(browse, runs):
    datasette = browse()
    file = runs / "second/rollouts/step_7/train/all/traces.jsonl"
    assert (await datasette.client.get(f"{BROWSE}/second/7")).status_code == 202
    assert browser_of(datasette).reader.wait(60)
    job = browser_of(datasette).reader.job("second", "7")
    job.state, job.error = FAILED, "The disk is <full>."
    page = await get(datasette, f"{BROWSE}/second/7", 409)
    assert "The disk is &lt;full&gt;." in page
    assert "http-equiv" not in page
    file.write_bytes(file.read_bytes() * 2)
    [again] = links(page, "try again")
    assert (await datasette.client.get(again)).status_code == 202
    assert browser_of(datasette).reader.wait(60)
    assert browser_of(datasette).reader.job("second", "7").state == DONE


async def test_a_folder_without_rollouts_is_said_so(browse):
    page = await get(browse(), f"{BROWSE}/notes", 404)
    assert "holds no rollouts of a known format" in words(page)


async def test_other_pages_answer_while_a_step_is_read(browse, runs):
    write_step(runs / "large", 1, *(f"question {count}" for count in range(3000)))
    datasette = browse()
    assert (await datasette.client.get(f"{BROWSE}/large/1")).status_code == 202
    reader, answered = browser_of(datasette).reader, 0
    while reader.job("large", "1").state in (WAITING, READING):
        assert (await datasette.client.get("/index/trajectories")).status_code == 200
        answered += 1
    assert answered > 0
    assert reader.job("large", "1").state == DONE


async def test_steps_are_read_one_after_the_other_and_once(browse, monkeypatch):
    done, asked = [], threading.Event()

    def read_when_all_are_asked(self, job):
        assert asked.wait(60)
        done.append((job.path, job.step))

    monkeypatch.setattr(Reader, "_read", read_when_all_are_asked)
    datasette = browse()
    for _ in range(3):
        for path, step in (("second", "7"), ("team~2Ffirst", "1"), ("team~2Ffirst", "2")):
            assert (await datasette.client.get(f"{BROWSE}/{path}/{step}")).status_code == 202
    asked.set()
    assert browser_of(datasette).reader.wait(60)
    assert done == [("second", "7"), ("team/first", "1"), ("team/first", "2")]


async def test_a_reading_that_breaks_off_does_not_stop_the_next(browse, monkeypatch):
    def break_off(self, job):
        if job.path == "second":
            raise RuntimeError("not foreseen")

    monkeypatch.setattr(Reader, "_read", break_off)
    datasette = browse()
    for path in ("second/7", "team~2Ffirst/1"):
        await datasette.client.get(f"{BROWSE}/{path}")
    reader = browser_of(datasette).reader
    assert reader.wait(60)
    assert (reader.job("second", "7").state, reader.job("team/first", "1").state) == (FAILED, DONE)


async def test_the_pass_rate_of_a_step_is_of_the_split_that_it_names(browse, runs):
    for split, passed in (("train", (True, False)), ("eval", (True, True))):
        records = [rollout(f"{split}{place}", "q", passed=one) for place, one in enumerate(passed)]
        write_steps(runs / "both", {1: records}, split=split)
    datasette = browse()
    await read(datasette, f"{BROWSE}/both/1")
    said = words(await get(datasette, f"{BROWSE}/both"))
    assert "read: 4 trajectories, train pass rate 0.500 1 of 2" in said


@pytest.mark.parametrize(
    "name", [text for text in PAYLOADS if "/" not in text and "\0" not in text and "\ud800" not in text]
)
async def test_a_hostile_name_is_only_text(tmp_path, name):
    root = tmp_path / "runs"
    write_step(root / name, 1, "x")
    file = prepare_index(root, tmp_path / "index.sqlite")
    datasette = Datasette([str(file)], metadata=browse_config(root.resolve(), file))
    [run] = re.findall(r'<td class="path"><a href="([^"]+)"', await get(datasette, BROWSE))
    for address in (BROWSE, html.unescape(run)):
        parser = Elements()
        page = await get(datasette, address)
        parser.feed(page[page.index('<div class="reading">') : page.index("</main>")])
        for tag, attributes in parser.found:
            assert tag not in {"script", "img", "svg", "iframe", "style"}
            assert not any(attribute.startswith("on") for attribute in attributes)
    assert "step/1/1" in await read(datasette, f"{html.unescape(run)}/1")
