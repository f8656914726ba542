"""Counts of what no trajectory records: null in the index, a dash or "not recorded" on pages, and never 0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from rltracer_sqlite import RLTracer
from tests.commands import indexed
from tests.index_factory import make_index
from tests.indexing import dump, index, made_before, rows
from tests.layouts.records import message, trace
from tests.plugin.conftest import get
from tests.plugin.html import table_rows, words

COUNTS = "select step, truncated, errors from steps order by step"
MAPPING = """
name = "mine"
[content]
prompt = "question"
completion = "answer"
[columns]
step = "step"
stop = "stop"
error = "failure.kind"
"""
SAID = [message("user", "6 * 7?"), message("assistant", "42")]


def write_rows(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps({"question": "6 * 7?", "answer": "42", **row}) + "\n" for row in rows))
    return file


@pytest.mark.parametrize(
    ("recorded", "truncated", "errors"),
    [
        ([{}, {}], None, None),
        ([{"stop": None, "failure": None}], None, None),
        ([{"stop": "stop"}, {}], 0, None),
        ([{"stop": "length"}, {"stop": "length"}, {}], 2, None),
        ([{"failure": {"kind": None}}, {}], None, 0),
        ([{"failure": {"kind": "Timeout"}}, {"failure": {"kind": ""}}], None, 1),
        ([{"failure": '{"kind": null}'}], None, 0),
    ],
    ids=["nothing", "nulls", "stop", "limit", "no error", "an error", "a text of JSON"],
)
def test_what_no_trajectory_of_a_step_records_is_null(
    tmp_path: Path, recorded: list[dict[str, Any]], truncated: int | None, errors: int | None
) -> None:
    (tmp_path / "mine.toml").write_text(MAPPING)
    (tmp_path / "run").mkdir()
    write_rows(tmp_path / "run" / "rows.jsonl", [{"step": 1, **one} for one in recorded])
    done = indexed(tmp_path / "x.sqlite", tmp_path / "run", "--mapping", tmp_path / "mine.toml")
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "x.sqlite", COUNTS) == [(1, truncated, errors)]


@pytest.mark.parametrize(
    ("facts", "truncated"),
    [
        ({"stop_condition": None}, None),
        ({"stop_condition": "agent_completed"}, 0),
        ({"stop_condition": "max_turns_reached"}, 1),
        ({"stop_condition": None, "calls": [{"finish_reason": "stop"}]}, 0),
        ({"stop_condition": None, "calls": [{"finish_reason": "length"}]}, 1),
    ],
    ids=["nothing", "an end", "a limit", "a call that ended", "a call that was cut off"],
)
def test_a_trace_that_does_not_say_why_it_stopped_is_not_known_to_be_whole(
    tmp_path: Path, facts: dict[str, Any], truncated: int | None
) -> None:
    nodes = [{"message": one, "parent": place - 1 if place else None} for place, one in enumerate(SAID)]
    file = tmp_path / "run" / "rollouts" / "step_1" / "train" / "all" / "traces.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**trace(SAID, id="a"), "nodes": nodes, "calls": [], **facts}) + "\n")
    index(tmp_path / "x.sqlite", tmp_path / "run")
    assert rows(tmp_path / "x.sqlite", COUNTS) == [(1, truncated, 0)]
    with RLTracer(tmp_path / "x.sqlite") as tracer:
        done = tracer.trajectory(1).load().metadata["completion"]
    assert done["truncated"] is (None if truncated is None else bool(truncated))


def test_a_count_comes_and_goes_with_the_rows_that_record_it_as_in_a_fresh_index(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    file = tmp_path / "run" / "rows.jsonl"
    for number, (recorded, wanted) in enumerate(
        [([{}], None), ([{}, {"stop_reason": "length"}], 1), ([{}, {}], None), ([{"stop_reason": "stop"}], 0)]
    ):
        said = [{"messages": SAID, "step": 1, "reward": 1.0, **one} for one in recorded]
        file.write_text("".join(json.dumps(row) + "\n" for row in said))
        index(tmp_path / "x.sqlite", tmp_path / "run")
        index(tmp_path / f"{number}.sqlite", tmp_path / "run")
        assert rows(tmp_path / "x.sqlite", COUNTS) == [(1, wanted, None)]
        counted = "select * from (select step, truncated, errors, tokens_mean, turns_mean, trajectories from steps)"
        assert rows(tmp_path / "x.sqlite", counted) == rows(tmp_path / f"{number}.sqlite", counted)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    of_step = {1: {"ok": None}, 2: {"truncated": 0}, 3: {"truncated": 1, "ok": 0}}
    told = [{"run": "told", "step": step, "reward": 1.0, **facts} for step, facts in of_step.items()]
    silent = [{"run": "silent", "step": 1, "split": split, "ok": None} for split in ("train", "eval")]
    return make_index(tmp_path_factory.mktemp("made") / "run.sqlite", [*told, *silent])


def test_an_index_from_before_gets_it_without_reading_a_file(made: Path, tmp_path: Path) -> None:
    before = tmp_path / "old.sqlite"
    before.write_bytes(made.read_bytes())
    made_before("m006_unrecorded", before)
    assert rows(before, "select step, truncated, errors from steps where run_id = 1 order by step") == [
        (1, 0, 0), (2, 0, 0), (3, 1, 1)
    ]  # fmt: skip
    index(before, tmp_path / "none", source=_Nothing())  # whatever is written to an index brings it up to date
    kept = "select run_id, step, split, truncated, errors from steps order by run_id, step, split"
    assert rows(before, kept) == rows(made, kept)
    assert rows(before, "pragma user_version") == rows(made, "pragma user_version")
    assert [line for line in dump(before) if " steps " in line and "insert" in line] == []


class _Nothing:
    name = "nothing"

    def shards(self, root: Path) -> list[Any]:
        return []


PAGE = "/-/rltracer/run/"


@pytest.mark.asyncio
async def test_pages_show_a_dash_for_what_is_not_recorded(made: Path) -> None:
    datasette = Datasette([str(made)])
    assert {row[0].split()[0]: row[8:10] for row in table_rows(await get(datasette, PAGE), "runs")} == {
        "told": ["1", "1"],
        "silent": ["–", "–"],
    }
    steps = {row[0]: row[10:12] for row in table_rows(await get(datasette, f"{PAGE}run/1"), "steps")}
    assert steps == {"3": ["1", "1"], "2": ["0", "0"], "1": ["–", "–"]}
    text = words(await get(datasette, f"{PAGE}run/2"))
    assert "This run does not record whether a trajectory ended with an error." in text


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("step/1/1", "truncation not recorded · errors not recorded"),
        ("step/1/2", "0 truncated · 0 with errors"),
        ("step/2/1", "truncation not recorded · errors not recorded"),
    ],
)
@pytest.mark.asyncio
async def test_a_step_says_what_is_not_recorded(made: Path, page: str, said: str) -> None:
    text = await get(Datasette([str(made)]), PAGE + page)
    assert said in words(text)
    assert table_rows(text, "groups")[0][-2:] == (["0", "0"] if "0 truncated" in said else ["–", "–"])
