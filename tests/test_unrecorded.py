"""Counts of what no trajectory records: null in the index, a dash or "not recorded" on pages, and never 0."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from rltracer_sqlite import RLTracer
from rltracer_sqlite.index.database import open_for_writing
from tests.commands import indexed, rltracer
from tests.index_factory import make_index
from tests.indexing import index, made_before, rows
from tests.layouts.records import message, trace
from tests.plugin.conftest import get
from tests.plugin.html import part, table_rows, words

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
    nothing = {"ok": None, "tool_calls": None, "content_kind": "token_ids"}
    silent = [{"run": "silent", "step": 1, "split": split, **nothing} for split in ("train", "eval")]
    return make_index(tmp_path_factory.mktemp("made") / "run.sqlite", [*told, *silent])


def test_an_index_from_before_gets_it_without_reading_a_file(made: Path, tmp_path: Path) -> None:
    before = tmp_path / "old.sqlite"
    before.write_bytes(made.read_bytes())
    made_before("m006_unrecorded", before)
    assert rows(before, "select step, truncated, errors from steps where run_id = 1 order by step") == [
        (1, 0, 0), (2, 0, 0), (3, 1, 1)
    ]  # fmt: skip
    connection = sqlite3.connect(before)
    connection.execute(
        "create view mine as select s.truncated, t.tool_calls from steps s join trajectories t using (run_id)"
    )
    connection.close()
    open_for_writing(before).close()
    for kept in (
        "select run_id, step, split, truncated, errors from steps order by 1, 2, 3",
        "select id, tool_calls from trajectories",
        "select run_id, step, split, env, name, trajectories, total from step_values order by 1, 2, 3, 4, 5",
        "pragma user_version",
        "pragma integrity_check",
        *(f"pragma table_xinfo({table})" for table in ("steps", "trajectories")),
    ):
        assert rows(before, kept) == rows(made, kept)
    assert len(rows(before, "select * from mine")) == len(
        rows(made, "select 1 from steps join trajectories using (run_id)")
    )


PAGE = "/-/rltracer/run/"


@pytest.mark.asyncio
async def test_pages_show_a_dash_for_what_is_not_recorded(made: Path) -> None:
    datasette = Datasette([str(made)])
    assert {row[0].split()[0]: row[9:11] for row in table_rows(await get(datasette, PAGE), "runs")} == {
        "told": ["1", "1"],
        "silent": ["–", "–"],
    }
    steps = {row[0]: row[10:12] for row in table_rows(await get(datasette, f"{PAGE}run/1"), "steps")}
    assert steps == {"3": ["1", "1"], "2": ["0", "0"], "1": ["–", "–"]}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            {"ok": None},
            "not recorded · as a table · SQL This run does not record whether a trajectory ended with an error",
        ),
        ({"ok": 1}, "0 types · as a table · SQL No trajectory of this run ended with an error"),
        ({"ok": 0}, "0 types · as a table · SQL 1 trajectory ended with an error whose type is not recorded"),
    ],
    ids=["not recorded", "none", "no type"],
)
@pytest.mark.asyncio
async def test_a_run_says_of_what_type_its_errors_are(tmp_path: Path, facts: dict[str, Any], said: str) -> None:
    made = make_index(tmp_path / "run.sqlite", [{"reward": 1.0, **facts}])
    page = await get(Datasette([str(made)]), f"{PAGE}run/1")
    assert words(part(page, "errors")) == f"Errors by type {said}."


def test_a_run_without_steps_has_no_count_of_them(tmp_path: Path) -> None:
    rows = [{"messages": SAID, "reward": 1.0}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = indexed(tmp_path / "x.sqlite", tmp_path / "rows.jsonl")
    assert "1 trajectory, 1 prompt group, no steps, 0 problems" in done.stdout + done.stderr
    assert "rows.jsonl: no steps" in rltracer("inspect", tmp_path / "x.sqlite").stdout.replace("\n", " ")


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


def write_text(file: Path, completion: str) -> None:
    rows = [{"prompt": "6 * 7?", "completion": completion, "reward": reward, "step": 1} for reward in (0.0, 1.0)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.asyncio
async def test_tool_calls_in_a_text_that_cannot_be_split_are_not_known_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write_text(tmp_path / "run" / "rows.jsonl", "It is <call>calc</call> 42.")
    index(tmp_path / "run.sqlite", tmp_path / "run")
    assert (
        rows(tmp_path / "run.sqlite", "select content_kind, tool_calls from trajectories")
        == [("prompt_completion", None)] * 2
    )
    assert rows(tmp_path / "run.sqlite", "select * from step_values where name = 'tool_calls'") == []
    with RLTracer(tmp_path / "run.sqlite") as tracer:
        assert tracer.trajectory(1).load().metadata["tool_calls"] is None
    lines = rltracer("inspect", tmp_path / "run.sqlite", "--step", 1, "--prompt", 1).stdout.splitlines()
    assert lines[-1].split() == ["1", "failed", "0.000", "1", "–", "–"]
    assert rltracer("plot", tmp_path / "run.sqlite", "length").returncode == 0
    datasette = Datasette([str(tmp_path / "run.sqlite")])
    assert "tool calls not recorded" in words(await get(datasette, f"{PAGE}trajectory/1"))
    assert {row[-4] for row in table_rows(await get(datasette, f"{PAGE}group/1"), "trajectories")} == {"–"}
    done = rltracer("export", tmp_path / "run.sqlite", "-o", tmp_path / "out.jsonl", "--tool-call-power", 1)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "out.jsonl.summary.json").read_text())
    for which in ("available", "selected"):
        assert summary[f"{which}_tool_call_distribution"] == {"mean": None, "counts": {}}
