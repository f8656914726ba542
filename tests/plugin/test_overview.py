"""The page of all runs: what it counts, says of their state, and leads to."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from datasette.app import Datasette

from datasette_rltracer.drawings import rate_bar, signed_bar, spark
from rltracer_sqlite import list_runs
from rltracer_sqlite.index.states import state_words
from tests.commands import indexed, rltracer
from tests.index_factory import make_index, new_index
from tests.layouts.records import message, trace
from tests.table_rows import write_lines
from tests.token_layouts import export_line, question, write_tokenizer

from .conftest import get, write_run
from .html import links, sql_link, table_rows, words
from .rows import sql_rows

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/index/"


def trajectories():
    for step in range(3):
        for number in range(4):
            yield {"run": "new", "step": step, "reward": float(number <= step), "prompt": f"{number % 2}?"}
    yield {"run": "old", "step": 7, "split": "eval", "reward": 0.5, "truncated": 1}
    yield {"run": "old", "step": 7, "split": "eval", "reward": None, "ok": 0, "error_type": "SandboxError"}


@pytest.mark.parametrize("path", [PAGE, PAGE.rstrip("/")])
async def test_every_run_is_a_row(datasette, path):
    rows = table_rows(await get(datasette, path), "runs")
    assert [row[0] for row in rows] == ["old prime-rl", "new prime-rl"]
    assert rows[1][2:5] == ["0–2", "12", "6"]
    assert rows[1][1].startswith("read completely")
    assert rows[1][5] == "0.500 train, 6 of 12"


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([5], "5"),
        ([1, 3], "1, 3"),
        ([1, 2, 4, 999, 1000, None], "1–2, 4, 999–1000"),
        (range(0, 20, 2), "0, 2, 4, 6, 8, 10, 12, 14, 16, 18"),
        (range(0, 22, 2), "0, 2, 4, 6, 8, 10, 12, 14, 16, …, 20"),
        (range(10, 1000, 2), "10, 12, 14, 16, 18, 20, 22, 24, 26, …, 998"),
    ],
    ids=["one", "two", "ranges", "ten", "eleven", "hundreds"],
)
async def test_steps_are_told_as_in_python_with_links_to_the_first_and_the_last(tmp_path, steps, said):
    rows = [{"run": "gaps", "step": step, "split": split} for step in steps for split in ("train", "eval")]
    database = make_index(tmp_path / "index.sqlite", [*rows, {"run": "other", "step": 2}])
    page = await get(Datasette([str(database)]), PAGE)
    assert {row[0].split()[0]: row[2] for row in table_rows(page, "runs")} == {"gaps": said, "other": "2"}
    assert f", steps {said}" in repr(list_runs(database)[0])
    known = [step for step in steps if step is not None]
    for step in known:
        address = f"/-/rltracer/index/step/1/{step}"
        assert links(page, str(step)).count(address) == (step in (known[0], known[-1]))


async def test_a_rate_of_a_run_without_splits_says_what_it_is_of(tmp_path):
    rows = [{"split": None, "reward": reward} for reward in (1.0, 1.0, 1.0, 0.0)]
    page = await get(Datasette([str(make_index(tmp_path / "index.sqlite", rows))]), PAGE)
    assert [row[5] for row in table_rows(page, "runs")] == ["0.750 3 of 4"]


async def test_a_run_without_training_is_told_by_its_split(datasette):
    [old, _] = table_rows(await get(datasette, PAGE), "runs")
    assert old[2:5] == ["7", "2", "1"]
    assert old[5] == "0.000 eval, 0 of 1, 1 unscored"
    assert old[9:11] == ["1", "1"]


@pytest.mark.parametrize(
    ("steps", "run_said", "counted", "is_told"),
    [
        ([1, 2], "over all steps prime-rl", "2", False),
        (
            [1, 2, None],
            "over all steps and 1 trajectory without a step, which no curve has prime-rl",
            "3 (1 without a step)",
            True,
        ),
        ([None, None], "over all trajectories prime-rl", "2", False),
    ],
    ids=["steps", "one without", "no steps"],
)
async def test_what_has_no_step_is_counted_and_said_to_be_in_no_curve(tmp_path, steps, run_said, counted, is_told):
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", [{"step": step, "reward": 1} for step in steps]))])
    page = await get(datasette, PAGE)
    assert ("What has no step counts, and is in no curve." in page) == is_told
    assert [row[3] for row in table_rows(page, "runs")] == [counted]
    assert run_said in words(await get(datasette, "/-/rltracer/index/run/1"))


async def test_the_terminal_lists_the_same_rates(demo, tmp_path):
    index = tmp_path / "index.sqlite"
    assert indexed(index, demo / "run", write_run(tmp_path / "other", [trace([message("user", "?")])])).returncode == 0
    facts = [json.loads(line) for line in rltracer("inspect", index, "--json").stdout.splitlines()]
    page = await get(Datasette([str(index)]), PAGE)
    told = {row[0].split()[0]: (row[5], row[7]) for row in table_rows(page, "runs")}
    assert [fact["split"] for fact in facts] == ["train", "train"]
    for fact in facts:
        rate, reward = (fact[name] for name in ("pass_rate", "reward_mean"))
        shown = "unscored" if rate is None else f"{rate:.3f}", "not recorded" if reward is None else f"{reward:.3f}"
        of = f", {fact['successes']} of {fact['scored']}, 35 unscored" if fact["scored"] else ""
        assert told[fact["run"]] == (f"{shown[0]} {fact['split']}{of}", shown[1])


async def test_curves_say_where_they_begin_and_end(datasette):
    page = await get(datasette, PAGE)
    assert "pass rate (train): from 0.25 at step 0 to 0.75 at step 2" in page
    assert "mean reward (eval): 0.5 at step 7" in page


async def test_the_sql_gives_the_same_runs(datasette):
    page = await get(datasette, PAGE)
    rows = await sql_rows(datasette, sql_link(page, "runs"))
    assert [row["name"] for row in rows] == [row[0].split()[0] for row in table_rows(page, "runs")]
    assert [row["trajectories"] for row in rows] == [2, 12]


async def test_a_run_leads_to_its_page_and_its_steps(datasette):
    page = await get(datasette, PAGE)
    assert links(page, "new") == ["/-/rltracer/index/run/1"]
    assert links(page, "7") == ["/-/rltracer/index/step/2/7"]


async def test_an_empty_index_says_how_to_fill_it(tmp_path):
    new_index(tmp_path / "empty.sqlite").close()
    page = await get(Datasette([str(tmp_path / "empty.sqlite")]), "/-/rltracer/empty/")
    assert "No run is in this index yet. Add one with: rltracer-index empty.sqlite RUN" in words(page)


async def test_many_runs_come_in_pages(tmp_path):
    rows = ({"run": f"run {number:03}", "step": 1, "reward": 1.0} for number in range(120))
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    page = await get(datasette, PAGE)
    assert "100 of 120 runs shown" in words(page)
    [later] = links(page, "next: 20 more")
    assert len(table_rows(await get(datasette, later), "runs")) == 20


COMPLETE = {
    "steps": 4,
    "unread_steps": 0,
    "untried_steps": 0,
    "files": 3,
    "reading": 0,
    "waiting": 0,
    "unread": 0,
    "gone": 0,
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ["read completely"]),
        ({"unread_steps": 3, "untried_steps": 2, "unread": 1}, ["1 of 4 steps read", "1 of 3 files could not be read"]),
        ({"unread_steps": 1, "unread": 1}, ["1 of 3 files could not be read"]),
        ({"waiting": 1}, ["1 of 3 files has an unfinished last line"]),
        (
            {"waiting": 2, "reading": 1},
            ["1 of 3 files not read to its end yet", "2 of 3 files have an unfinished last line"],
        ),
        ({"gone": 2, "unread": 1}, ["1 of 3 files could not be read", "2 of 3 files gone since they were read"]),
        ({"files": None}, ["no file found yet"]),
    ],
)
async def test_the_state_of_a_run_in_words(change, said):
    assert state_words({**COMPLETE, **change}) == said


@pytest.mark.parametrize(
    ("points", "lines", "dots", "said"),
    [
        ([(1, 0.0), (2, 1.0)], 1, 1, "from 0 at step 1 to 1 at step 2"),
        ([(1, 0.5)], 0, 1, "0.5 at step 1"),
        ([(1, 0.0), (2, None), (3, 1.0)], 0, 2, "from 0 at step 1 to 1 at step 3, 1 without a value"),
        ([(1, float("nan")), (2, 0.25)], 0, 1, "0.25 at step 2, 1 without a value"),
        ([(1, 2.0), (2, 2.0), (3, 2.0)], 1, 1, "from 2 at step 1 to 2 at step 3"),
    ],
)
async def test_a_curve_breaks_where_a_value_is_missing(points, lines, dots, said):
    drawn = spark(points, "x")
    assert (drawn.count("<polyline"), drawn.count("<circle")) == (lines, dots)
    assert f"x: {said}</title>" in drawn


async def test_a_curve_of_nothing_says_so():
    assert "not recorded" in spark([], "x")
    assert "not recorded" in spark([(1, None)], "x")


async def test_bars_stay_inside_their_width():
    assert 'width="60.0" height="8"' in rate_bar(4, 4, 4)
    assert 'class="passed" x="0" y="1" width="0.0"' in rate_bar(0, 0, 0)
    assert 'x="15.0" y="1.5" width="15.0"' in signed_bar(-1, 2)
    assert signed_bar(None, 1) == signed_bar(1, 0) == signed_bar(float("nan"), 1) == ""


async def test_a_run_of_which_no_file_was_found_yet_is_a_row(tmp_path):
    made = make_index(tmp_path / "index.sqlite", trajectories())
    with closing(sqlite3.connect(made)) as connection, connection:
        connection.execute(
            """
            insert into runs (name, root, source, success_path, success_threshold, created_at)
            values ('begun', '/begun', 'prime-rl', 'reward', 1, '2026-11-29T19:58:57Z')
            """
        )
    datasette = Datasette([str(made)])
    assert "no file found yet" in words(await get(datasette, PAGE))
    assert "no file found yet" in words(await get(datasette, f"{PAGE}run/3"))


async def test_token_ids_without_a_tokenizer_are_told_of_a_run_and_on_its_page(tmp_path):
    run, database = tmp_path / "run", tmp_path / "index.sqlite"
    write_lines(run / "token_exports/step_1/rank_0.jsonl", export_line(question()))
    needed = "the text of 1 trajectory needs a tokenizer: rltracer-index --tokenizer PATH"
    for options, told in (((), True), (("--tokenizer", write_tokenizer(tmp_path / "tokenizer")), False)):
        assert indexed(database, run, *options).returncode == 0
        datasette = Datasette([str(database)])
        [row] = table_rows(await get(datasette, PAGE), "runs")
        page = words(await get(datasette, f"{PAGE}run/1"))
        state = f"read to the end {needed}" if told else "read completely"
        assert row[1].startswith(state)
        assert state in page
        assert (f"No problem in what was read; {needed}." in page) == told
        assert ("Every line of every file was read." in page) != told
