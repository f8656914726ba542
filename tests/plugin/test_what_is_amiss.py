"""Pages say why a text is missing, or is none that anybody wrote, and what a search cannot find."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from datasette.app import Datasette

from rltracer_sqlite.tokens.templates import NO_TEXT
from tests.commands import indexed
from tests.index_factory import make_index
from tests.layouts import append, message, trace
from tests.layouts.stream import write_j3
from tests.token_layouts import micro_batch, question, write_bin
from tests.wrong_tokenizers import LONG, SHARD, wrong

from .conftest import get
from .html import part, words

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/x"


@pytest.fixture
def shards(tmp_path):
    write_bin(tmp_path / "run" / SHARD, [micro_batch("g20", [LONG, question()])])
    return tmp_path / "run"


async def test_token_ids_say_why_they_have_no_text(shards, tmp_path):
    indexed(tmp_path / "x.sqlite", shards, "--fts")
    datasette = Datasette([str(tmp_path / "x.sqlite")])
    page = words(await get(datasette, f"{PAGE}/trajectory/1"))
    assert NO_TEXT in page
    assert "Its messages are recorded as token ids only." in page
    assert "No message was recorded" not in page
    group = words(await get(datasette, f"{PAGE}/group/1"))
    assert NO_TEXT in group
    assert group.count("no text ") >= 2  # in the place of the last words of either
    beside = words(await get(datasette, f"{PAGE}/compare?a=1&b=2"))
    assert beside.count(NO_TEXT) == 2
    assert "There is nothing to compare: neither has a message." in beside
    assert "message for message" not in beside
    found = words(await get(datasette, f"{PAGE}/search?q=anything"))
    assert "0 of 2 trajectories can be searched; 2 have no text: token ids without a tokenizer." in found
    assert "came later" not in found


async def test_a_tokenizer_that_does_not_fit_is_told_with_each_text(shards, tmp_path):
    indexed(tmp_path / "x.sqlite", shards, "--tokenizer", wrong(tmp_path / "other"))
    datasette = Datasette([str(tmp_path / "x.sqlite")])
    for number in (1, 2):
        assert "seems not to fit these files: none of" in words(await get(datasette, f"{PAGE}/trajectory/{number}"))


async def test_a_run_with_problems_is_not_called_read_completely(tmp_path):
    append(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", trace([message("user", "?")]), {"no": "rollout"})
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    datasette = Datasette([str(tmp_path / "x.sqlite")])
    for address in (f"{PAGE}/", f"{PAGE}/run/1"):
        page = words(await get(datasette, address))
        assert "read to the end" in page
        assert "read completely" not in page
        assert "1 problem" in page


def into_a_folder(file):
    file.unlink()
    file.mkdir()


def with_a_bad_line(file):
    append(file, {"no": "rollout"})


def in_the_middle_of_a_line(file):
    with file.open("a") as stream:
        stream.write("{waiting")


def emptied(file):
    file.write_bytes(b"")


TRACES = "rollouts/step_{}/{}/all/traces.jsonl"
NONE = f"No trajectory of this step was found. {TRACES.format(2, 'train')}"
NOT_ALL = "Of the files of this step not all was read:"
FOLDER = "is a folder. All problems of the run"
AMISS = [
    (into_a_folder, "train", f"{NONE} {FOLDER}", "1 of 4 files could not be read, of step 2", "could not be read"),
    (
        into_a_folder, "eval", f"Not all of this step could be read. {TRACES.format(2, 'eval')} {FOLDER}",
        "1 of 5 files could not be read, of step 2", "could not be read",
    ),
    (with_a_bad_line, "train", f"{NOT_ALL} 1 problem.", "read to the end 1 problem", None),
    (
        in_the_middle_of_a_line, "train", f"{NOT_ALL} 1 of 1 file has an unfinished last line.",
        "1 of 4 files has an unfinished last line, of step 2", None,
    ),
    (
        emptied, "train", f"{NONE}: it is empty. All problems of the run", "1 of 4 files is empty, of step 2",
        "no trajectory: it is empty",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spoil", "split", "of_step", "of_run", "in_list"),
    AMISS,
    ids=["unread", "unread of two", "bad line", "waiting", "empty"],
)
async def test_what_of_a_step_was_not_read_is_said_once(tmp_path, spoil, split, of_step, of_run, in_list):
    files = {(step, "train"): tmp_path / "run" / TRACES.format(step, "train") for step in (1, 2, 3, 4)}
    files[2, split] = tmp_path / "run" / TRACES.format(2, split)
    for (step, one), file in files.items():
        append(file, trace([message("user", "?")], id=f"{one}{step}", reward=1))
    spoil(files[2, split])
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    datasette = Datasette([str(tmp_path / "x.sqlite")])
    assert words(part(await get(datasette, f"{PAGE}/step/1/2"), "unread")) == of_step
    assert words(part(await get(datasette, f"{PAGE}/step/1/1"), "unread")) == ""
    run, overview = await get(datasette, f"{PAGE}/run/1"), words(await get(datasette, f"{PAGE}/"))
    assert of_run in words(part(run, "headline"))
    assert of_run.removesuffix(" 1 problem") in overview
    for page in (words(run), overview):
        assert "of 4 steps read" not in page
        assert "read so far" not in page
    assert (in_list or "2 train 1") in words(part(run, "steps"))


async def test_only_the_chosen_split_of_a_step_is_told_of(tmp_path):
    for split in ("train", "eval"):
        append(tmp_path / "run" / TRACES.format(1, split), trace([message("user", "?")], id=split))
    into_a_folder(tmp_path / "run" / TRACES.format(1, "eval"))
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    datasette = Datasette([str(tmp_path / "x.sqlite")])
    train, evaluation = [await get(datasette, f"{PAGE}/step/1/1?split={split}") for split in ("train", "eval")]
    assert words(part(train, "unread")) == ""
    said = f"No trajectory of split eval of this step was found. {TRACES.format(1, 'eval')} {FOLDER}"
    assert words(part(evaluation, "unread")) == said


async def test_what_another_file_of_the_step_lacks_is_said_beside_one_that_gave_nothing(tmp_path):
    for split in ("train", "eval"):
        append(tmp_path / "run" / TRACES.format(1, split), trace([message("user", "?")], id=split))
    with_a_bad_line(tmp_path / "run" / TRACES.format(1, "train"))
    into_a_folder(tmp_path / "run" / TRACES.format(1, "eval"))
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    page = await get(Datasette([str(tmp_path / "x.sqlite")]), f"{PAGE}/step/1/1")
    assert words(part(page, "unread")).endswith(f"{FOLDER} Of other files of this step not all was read: 1 problem.")


async def test_a_file_without_a_step_may_hold_any(tmp_path):
    write_j3(tmp_path / "run")
    [live] = (tmp_path / "run").rglob("stream/*.jsonl")
    with_a_bad_line(live)
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    datasette = Datasette([str(tmp_path / "x.sqlite")])
    for step in (1, 2, 3):
        page = await get(datasette, f"{PAGE}/step/1/{step}")
        assert words(part(page, "unread")) == "Of the files that may hold this step not all was read: 1 problem."
    assert "read to the end 1 problem" in words(part(await get(datasette, f"{PAGE}/run/1"), "headline"))


async def test_thousands_of_steps_that_were_not_read_are_told(tmp_path):
    path = make_index(tmp_path / "x.sqlite", [{"step": 1, "reward": 1}])
    with closing(sqlite3.connect(path)) as connection, connection:
        steps = [(step, f"step {step}") for step in range(2, 3002)]
        connection.executemany(
            "insert into steps (run_id, step, split) values (1, ?, 'train')", [(s,) for s, _ in steps]
        )
        connection.executemany(
            """
            insert into shards (run_id, step, path, file, layout, split, size, mtime_ns, state)
            values (1, ?, ?, '', 'traces', 'train', 1, 1, 'unread')
            """,
            steps,
        )
    datasette = Datasette([str(path)])
    for address in ("/", "/run/1"):
        assert "3,000 of 3,001 files could not be read, of steps 2–3001" in words(await get(datasette, PAGE + address))
    chart = await get(datasette, f"{PAGE}/run/1/charts/pass_rate.json")
    assert "No trajectories of steps 2\\u20133001 of train were read." in chart
