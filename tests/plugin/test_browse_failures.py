"""Steps of `rltracer serve` that cannot be read: each says why, on every page that lists it, and nothing loops."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest
from datasette.utils import tilde_encode

from datasette_rltracer.browse_folder import browser_of
from rltracer_sqlite.browse.process import safe_environment
from tests.small_runs import touch, write_step
from tests.table_samples import SAMPLES

from .conftest import BROWSE, get
from .html import links, words

pytestmark = pytest.mark.asyncio


def without_pyarrow(run, monkeypatch, tmp_path):
    """Write a step of an old prime-rl run, and let pyarrow be missing in the process that reads it."""
    (run / "step_1").mkdir(parents=True)
    (run / "step_1/0.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    (tmp_path / "hidden/pyarrow").mkdir(parents=True)
    (tmp_path / "hidden/pyarrow/__init__.py").write_text("raise ImportError")
    environment = {**safe_environment(), "PYTHONPATH": f"{tmp_path / 'hidden'}{os.pathsep}{os.pathsep.join(sys.path)}"}
    monkeypatch.setattr("datasette_rltracer.browse_reader.safe_environment", lambda: environment)


def no_rollouts(run, monkeypatch, tmp_path):
    (run / "rollouts/step_1/train/all").mkdir(parents=True)
    (run / "rollouts/step_1/train/all/traces.jsonl").write_text('{"loss": 1}\n')


def unfinished(run, monkeypatch, tmp_path):
    file = write_step(run, 1, "x")
    file.write_bytes(file.read_bytes().rstrip(b"\n")[:-5])


def empty(run, monkeypatch, tmp_path):
    write_step(run, 1)


def leads_out(run, monkeypatch, tmp_path):
    file = write_step(run, 1, "x")
    file.rename(tmp_path / "outside.jsonl")
    file.symlink_to(tmp_path / "outside.jsonl")


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (without_pyarrow, "needs pyarrow: pip install 'datasette-rltracer[parquet]'."),
        (no_rollouts, "traces.jsonl: line 1:"),
        (unfinished, "traces.jsonl: it ends in the middle of its only line."),
        (empty, "traces.jsonl: it is empty."),
        (leads_out, "leads outside the run's folder; what it points to is not read."),
    ],
)
async def test_a_step_without_a_trajectory_says_why_and_does_not_loop(browse, runs, monkeypatch, tmp_path, write, why):
    write(runs / "bad", monkeypatch, tmp_path)
    datasette = browse()
    address = f"{BROWSE}/bad/1"
    await get(datasette, address, 202)
    assert browser_of(datasette).reader.wait(60)
    for again in (f"{address}?waited=1", address):
        page = await get(datasette, again, 409)
        assert "http-equiv" not in page
        assert why in words(page)
        assert links(page, "try again")
    listed = words(await get(datasette, f"{BROWSE}/bad"))
    assert why in listed
    assert why in words(await get(datasette, "/-/rltracer/index/step/1/1"))
    # Another server knows nothing of the attempt, and tries once.
    other = browse()
    if (await other.client.get(address)).status_code == 202:
        assert browser_of(other).reader.wait(60)
    page = await get(other, address, 409)
    assert "http-equiv" not in page
    assert why in words(page)


async def test_files_of_no_known_name_are_told_beside_those_that_are_read(browse, runs):
    SAMPLES["ms-swift"][1](runs / "mixed")
    touch(runs / "mixed", "extra.json", "more.csv")
    datasette = browse()
    listed = "files that tell no step by their names 3"
    page = words(await get(datasette, f"{BROWSE}/mixed"))
    assert listed in page
    assert "not read 1 file is left aside: named as no file of ms-swift; to read" in page
    assert "1 file is left aside: a kind of file that is not read; write it as JSON lines or as Parquet." in page
    await get(datasette, f"{BROWSE}/mixed/none", 202)
    assert browser_of(datasette).reader.wait(60)
    page = words(await get(datasette, f"{BROWSE}/mixed"))
    assert re.search(r"read: 2 records, .+ 1 file is left aside: named as no file of ms-swift; to read", page)


async def test_a_step_whose_files_are_left_aside_says_why(browse, runs):
    write_step(runs / "bad", 2, "records with text")
    (runs / "bad/step_1").mkdir()
    (runs / "bad/step_1/0.parquet").write_bytes(b"PAR1")
    datasette = browse()
    page = words(await get(datasette, f"{BROWSE}/bad/1", 202))
    assert browser_of(datasette).reader.wait(60)
    for address in (f"{BROWSE}/bad/1?waited=1", f"{BROWSE}/bad"):
        page = words((await datasette.client.get(address)).text)
        assert re.search("1 file is left aside: .+", page)


async def test_a_step_of_which_one_file_cannot_be_read_is_shown_with_the_reason(browse, runs, tmp_path):
    write_step(runs / "bad", 1, "a question")
    (tmp_path / "outside.jsonl").write_text("{}\n")
    other = runs / "bad/rollouts/step_1/eval/all/traces.jsonl"
    other.parent.mkdir(parents=True)
    other.symlink_to(tmp_path / "outside.jsonl")
    datasette = browse()
    address = f"{BROWSE}/bad/1"
    await get(datasette, address, 202)
    assert browser_of(datasette).reader.wait(60)
    for again in (f"{address}?waited=1", address):
        response = await datasette.client.get(again)
        assert (response.status_code, response.headers["location"]) == (302, "/-/rltracer/index/step/1/1")
    page = words(await get(datasette, "/-/rltracer/index/step/1/1"))
    assert "Not all of this step could be read. rollouts/step_1/eval/all/traces.jsonl leads outside" in page
    listed = words(await get(datasette, f"{BROWSE}/{tilde_encode('bad')}"))
    assert "1 file gave no trajectory: rollouts/step_1/eval/all/traces.jsonl leads outside" in listed


async def test_a_reading_that_is_killed_is_said(browse, runs, monkeypatch):
    from datasette_rltracer import browse_reader

    def killed(process, job):
        os.kill(process.pid, signal.SIGKILL)
        return followed(process, job)

    followed = browse_reader._followed
    monkeypatch.setattr(browse_reader, "_followed", killed)
    datasette = browse()
    await get(datasette, f"{BROWSE}/second/7", 202)
    assert browser_of(datasette).reader.wait(60)
    page = await get(datasette, f"{BROWSE}/second/7?waited=1", 409)
    assert "http-equiv" not in page
    assert "The reading broke off" in words(page)
    assert "could not be read: The reading broke off" in words(await get(datasette, f"{BROWSE}/second"))


async def test_a_run_whose_name_is_not_utf8_is_listed_without_an_address(browse, runs):
    odd = runs / os.fsdecode(b"odd\xff")
    try:
        write_step(odd, 1, "a question")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    page = await get(browse(), BROWSE)
    assert re.search("odd.+ its name is not UTF-8: rename it to read it here", words(page))
    assert f'href="{BROWSE}/second"' in page
    assert not re.search('href="[^"]*odd', page)
