"""Databases that somebody made to do harm are refused, stopped, or said to be damaged in a sentence."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from datasette_rltracer import bounds
from rltracer_sqlite.adapter import open_run
from rltracer_sqlite.browse.process import safe_environment
from rltracer_sqlite.export import ExportPreferences, TraceDataExporter, TraceRunSpec
from rltracer_sqlite.index.database import IndexFileError, open_for_writing, open_index
from rltracer_sqlite.roots import Roots
from tests.commands import indexed, inspected, sentence
from tests.indexing import copied
from tests.interrupts import TAKE_INTERRUPTS

ENDLESS = "with recursive n(i) as (values (1) union all select i + 1 from n)"
PAGES = (
    "/", "/run/1", "/step/1/1", "/group/1", "/group/2", "/prompt/1/2", "/trajectory/1", "/trajectory/2?view=raw",
    "/trajectory/1.json", "/trajectory/1?view=tokens", "/trajectory/1/record", "/compare?a=2&b=3", "/compare?group=2",
    "/search?q=pick", "/export?_preview=sft", "/run/1/charts", "/run/1/charts/reward.json",
    "/run/1/charts/difficulty.json",
)  # fmt: skip


@pytest.fixture
def place(usual: Path, tmp_path: Path) -> Path:
    """Return a folder with a run and its index, to be changed."""
    return copied(usual, tmp_path / "copy")


def change(database: Path, *statements: str) -> None:
    connection = sqlite3.connect(database, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def view(table: str, body: str) -> tuple[str, str]:
    return f"alter table {table} rename to away", f"create view {table} as {body}"


ODD: dict[str, tuple[tuple[str, ...], str]] = {
    "an endless view": (view("fields", f"{ENDLESS} select away.*, i from away, n"), "fields is no plain table"),
    "a view of runs": (view("runs", "select * from away"), "runs is no plain table"),
    "a view in other letters": (view("RUNS", "select * from away"), "runs is no plain table"),
    "a view that takes rows": (
        (*view("steps", "select * from away"),
         "create trigger t instead of insert on steps begin insert into prompts (id) values (1); end"),
        "steps is no plain table",
    ),
    "a virtual table": (
        ("drop table annotations", "create virtual table annotations using fts5(trajectory_id)"),
        "annotations is no plain table",
    ),
    "a loose table": (
        ("drop table problems", "create table problems (id, shard_id, line, byte_offset, byte_length, reason)"),
        "problems is no plain table",
    ),
    "a trigger": (
        ("create trigger t after insert on runs begin delete from prompts; end",), "runs has a trigger"
    ),
    "a computed column": (
        ("alter table trajectories add column info_x text as (hex(zeroblob(500))) virtual",),
        "trajectories.info_x is no column",
    ),
    "a computed column in the place of a recorded one": (
        ("alter table trajectories drop column data_idx",
         "alter table trajectories add column data_idx integer as (turns) virtual"),
        "trajectories.data_idx is no column",
    ),
    "a column of another type": (
        ("alter table prompts rename column preview to x", "alter table prompts add column preview blob"),
        "prompts.preview is no column",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("statements", "said"), ODD.values(), ids=ODD)
def test_t12_an_index_that_is_built_otherwise_is_refused(place: Path, statements: tuple[str, ...], said: str) -> None:
    database = place / "run.sqlite"
    change(database, *statements)
    for opening in (open_index, open_for_writing, open_run):
        with pytest.raises(IndexFileError, match=said):
            opening(database)
    with pytest.raises(IndexFileError, match=said):
        TraceDataExporter([TraceRunSpec.from_index(database)], ExportPreferences(mode="sft")).inspect()
    assert said in sentence(indexed(database, place / "run"))
    assert said in sentence(inspected(database))


@pytest.mark.asyncio
@pytest.mark.parametrize(("statements", "said"), ODD.values(), ids=ODD)
async def test_t12_it_has_no_pages(place: Path, statements: tuple[str, ...], said: str) -> None:
    change(place / "run.sqlite", *statements)
    datasette = Datasette([str(place / "run.sqlite")])
    for page in ("", "/trajectory/1"):
        assert (await datasette.client.get(f"/-/rltracer/run{page}")).status_code == 404
    assert (await datasette.client.get("/run/trajectories.sft")).status_code in (400, 404)


@pytest.mark.asyncio
async def test_t12_views_get_no_functions_with_side_effects(place: Path) -> None:
    change(place / "run.sqlite", "create view own as select load_extension('x') as loaded")
    datasette = Datasette([str(place / "run.sqlite")])
    response = await datasette.client.get("/run.json?sql=select+*+from+own", follow_redirects=True)
    assert "unsafe use of" in response.text
    assert (await datasette.client.get("/-/rltracer/run/run/1")).status_code == 200


def test_t12_tables_and_views_of_ones_own_do_no_harm(place: Path) -> None:
    change(place / "run.sqlite", f"create view own as {ENDLESS} select i from n", "create table notes (note)")
    assert inspected(place / "run.sqlite").returncode == 0


# What is written into every row of a column: what its table does not take, or numbers that no sum can hold.
SPOILT: tuple[tuple[str, str, Any], ...] = (
    ("runs", "success_threshold", "<b>'\"x"), ("steps", "trajectories", b"\xff\x00"), ("steps", "reward_mean", "x"),
    ("shards", "path", 1.5), ("shards", "file", 1.5), ("prompts", "preview", None),
    ("prompt_groups", "scored", 2**63 - 1),
    ("trajectories", "turns", "x"), ("trajectories", "reward", b"\xff"), ("trajectories", "byte_length", 2**63 - 1),
    ("trajectories", "completion_tokens", "x"),
)  # fmt: skip


def spoil(database: Path, table: str, column: str, value: Any) -> None:
    """Write a value into every row of a column that does not take it, as whoever writes bytes can."""
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("pragma writable_schema = on")
    [(sql,)] = connection.execute("select sql from sqlite_master where name = ?", (table,)).fetchall()
    loose = re.sub(r"not null|\)\s*strict$", lambda found: ")" * (found[0] != "not null"), sql)
    loose = re.sub(rf"(?m)^(\s+{column}) (integer|real|text)", r"\1", loose)
    loose = re.sub(r"check \(.*?\)\)", "", loose)
    connection.execute("update sqlite_master set sql = ? where name = ?", (loose, table))
    connection.execute("pragma writable_schema = reset")
    connection.execute(f"update {table} set {column} = ?", (value,))
    connection.execute("pragma writable_schema = on")
    connection.execute("update sqlite_master set sql = ? where name = ?", (sql, table))
    connection.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(("table", "column", "value"), SPOILT)
async def test_t13_a_page_says_what_is_wrong_with_values(place: Path, table: str, column: str, value: Any) -> None:
    spoil(place / "run.sqlite", table, column, value)
    datasette = Datasette([str(place / "run.sqlite")])
    for page in PAGES:
        response = await datasette.client.get(f"/-/rltracer/run{page}")
        assert response.status_code != 500, (page, response.text[-300:])
        assert response.status_code != 409 or "damaged" in response.text or "out of range" in response.text


LOST = {
    "there is no table steps": "drop table steps",
    "there is no table annotations": "drop table annotations",
    "there is no table problems": "drop table problems",
    "there is no column prompt_groups.reward_std": "alter table prompt_groups rename column reward_std to x",
    "there is no column trajectories.stop_condition": "alter table trajectories rename column stop_condition to x",
}


@pytest.mark.asyncio
@pytest.mark.parametrize(("said", "statement"), LOST.items(), ids=LOST)
async def test_t13_a_page_says_what_is_missing(place: Path, said: str, statement: str) -> None:
    datasette = Datasette([str(place / "run.sqlite")])
    assert (await datasette.client.get("/-/rltracer/run/run/1")).status_code == 200
    change(place / "run.sqlite", statement)  # while it is served
    answers = [await datasette.client.get(f"/-/rltracer/run{page}") for page in PAGES]
    assert {answer.status_code for answer in answers} <= {200, 302, 400, 404, 409}
    assert {said in answer.text for answer in answers if answer.status_code == 409} == {True}


@pytest.mark.asyncio
async def test_t13_a_mean_of_what_no_sum_can_hold_is_no_number(place: Path) -> None:
    change(
        place / "run.sqlite", "update steps set reward_mean = 9e999", "update prompt_groups set reward_mean = -9e999"
    )
    datasette = Datasette([str(place / "run.sqlite")])
    for page in PAGES:
        response = await datasette.client.get(f"/-/rltracer/run{page}", follow_redirects=True)
        assert response.status_code in (200, 404), page


HUGE = (
    ("runs", "name"), ("runs", "source"), ("prompts", "preview"), ("prompt_groups", "env"), ("trajectories", "uid"),
    ("trajectories", "env"), ("trajectories", "stop_condition"), ("shards", "path"),
    ("shards", "file"),
)  # fmt: skip


@pytest.mark.asyncio
async def test_t14_a_text_that_is_longer_than_any_of_an_index_makes_no_page_long(place: Path) -> None:
    for table, column in HUGE:
        statement = f"update {table} set {column} = printf('%.*c', 300000, 'x')"
        change(place / "run.sqlite", f"{statement} where id = (select max(id) from {table})")
    datasette = Datasette([str(place / "run.sqlite")])
    for page in (*PAGES, "/group/2", "/trajectory/4", "/compare?a=3&b=4"):
        response = await datasette.client.get(f"/-/rltracer/run{page}", follow_redirects=True)
        assert response.status_code in (200, 404, 409)
        assert (page, len(response.text) < 250_000) == (page, True)


@pytest.mark.asyncio
async def test_t13_a_database_that_goes_and_comes_again(place: Path) -> None:
    file = place / "run.sqlite"
    datasette = Datasette([str(file)], settings={"num_sql_threads": 1})
    page = "/-/rltracer/run/run/1"
    assert (await datasette.client.get(page)).status_code == 200
    content = file.read_bytes()
    for state, status in ((b"", 409), (b"no database" * 1000, 409), (content, 200)):
        file.write_bytes(state)
        assert (await datasette.client.get(page)).status_code == status


@pytest.mark.parametrize(("table", "column"), [("trajectories", "turns"), ("trajectories", "reward")])
@pytest.mark.parametrize("value", ["x", b"\xff"])
def test_t13_a_command_says_what_is_wrong_with_values(place: Path, table: str, column: str, value: Any) -> None:
    spoil(place / "run.sqlite", table, column, value)
    for arguments in ([], ["--step", "1"], ["--trajectory", "1"], ["--step", "1", "--prompt", "1"]):
        done = inspected(place / "run.sqlite", *arguments)
        assert done.returncode == 0 or "damaged" in sentence_of(done)


def sentence_of(done: Any) -> str:
    *_, said = done.stderr.strip().split("\n")
    return str(said)


@pytest.mark.asyncio
async def test_t14_our_own_questions_stop(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasette = Datasette([str(place / "run.sqlite")], settings={"sql_time_limit_ms": 200})
    assert (await datasette.client.get("/-/rltracer/run/trajectory/1")).status_code == 200
    monkeypatch.setattr(bounds, "MOST_STEPS", 1_000_000)
    # It has been met as an index, and is changed then.
    change(place / "run.sqlite", *view("runs", f"{ENDLESS} select away.* from away, n"))
    for page in ("/", "/trajectory/1", "/compare?a=2&b=3", "/t/run/nobody", "/export?_preview=sft"):
        assert (await datasette.client.get(f"/-/rltracer/run{page}")).status_code in (200, 400, 404, 503)
    assert (await datasette.client.get("/-/rltracer/run/trajectory/1")).status_code == 503


def test_t14_a_command_can_be_stopped(place: Path) -> None:
    program = f"""
        import os, sys
        from functools import partial
        from pathlib import Path
        from rltracer_sqlite.index.database import open_index
        connection = open_index(Path(sys.argv[1]))
        # Said by SQLite once it is at work, and before any more of Python, which would take the signal for its own.
        connection.create_function("begun", 0, partial(os.write, 1, b"asked\\n"), deterministic=True)
        connection.execute("{ENDLESS} select count(*) from n where begun()").fetchone()
    """
    command = [
        sys.executable,
        "-c",
        TAKE_INTERRUPTS + "\n".join(line.strip() for line in program.splitlines()),
        str(place / "run.sqlite"),
    ]
    process = subprocess.Popen(command, env=safe_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"asked\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert b"interrupted" in said


@pytest.mark.skipif(sys.version_info < (3, 11), reason="SQLite's limits came with Python 3.11")
def test_t14_a_value_of_a_gigabyte_is_refused(place: Path) -> None:
    change(place / "run.sqlite", "update runs set success_path = printf('%.*c', 68000000, 'x')")
    assert "cannot be used" in sentence(inspected(place / "run.sqlite"))


@pytest.mark.threat("T10")
@pytest.mark.parametrize("where", [Path.home, lambda: Path("/")])
def test_the_home_folder_is_no_root_because_a_database_lies_in_it(where: Callable[[], Path], tmp_path: Path) -> None:
    assert Roots.for_database(where() / "saved.sqlite").allowed == []
    assert Roots.for_database(tmp_path / "saved.sqlite").allowed == [tmp_path]
