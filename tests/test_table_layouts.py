"""The containers and layouts of rows: lines, columns, lists of one, JSON arrays, Parquet and SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources.base import Entry, LocatorError, NotRollouts, Position, Problem, Shard
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.table import TableSource, joined, mapping_source_from_text
from tests.layouts import seal
from tests.table_rows import write_lines, write_parquet
from tests.test_table_presets import locator, read

MAPPING = """
name = "mine"
{layout}
[files]
table = "rows"
[content]
kind = "messages"
prompt = "q"
completion = "a"
[columns]
reward = "r"
step = "n"
"""
ROWS = [{"q": f"question {n}", "a": f"answer {n} 😀\u2028", "r": n / 4, "n": n, "note": "x"} for n in range(6)]


def mine(layout: str = "") -> TableSource:
    return mapping_source_from_text(MAPPING.format(layout=layout))


def as_lines(root: Path) -> None:
    write_lines(root / "rows.jsonl", *ROWS)


def as_array(root: Path) -> None:
    (root / "rows.json").write_text(json.dumps(ROWS, indent=2, ensure_ascii=False), encoding="utf-8")


def as_columns(root: Path) -> None:
    lines = [{name: [row[name] for row in part] for name in ROWS[0]} for part in (ROWS[:4], ROWS[4:])]
    write_lines(root / "rows.jsonl", *lines)


def as_singletons(root: Path) -> None:
    write_lines(root / "rows.jsonl", *({**{name: [value] for name, value in row.items()}, "idx": 3} for row in ROWS))


def as_parquet(root: Path) -> None:
    pytest.importorskip("pyarrow")
    write_parquet(root / "rows.parquet", ROWS)


def as_sqlite(root: Path) -> None:
    connection = sqlite3.connect(root / "rows.db")
    connection.execute("create table rows (q text, a blob, r real, n integer, note text)")
    connection.executemany(
        "insert into rows values (?, ?, ?, ?, ?)",
        [(q, a.encode(), r, n, x) for q, a, r, n, x in map(dict.values, ROWS)],
    )
    connection.commit()
    connection.close()


WRITERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "lines": (as_lines, ""),
    "array": (as_array, ""),
    "columns": (as_columns, 'layout = "columns"'),
    "singletons": (as_singletons, 'layout = "singletons"'),
    "parquet": (as_parquet, ""),
    "sqlite": (as_sqlite, ""),
}


@pytest.mark.parametrize("container", WRITERS)
def test_rows_are_found_and_loaded(container: str, tmp_path: Path) -> None:
    write, layout = WRITERS[container]
    write(tmp_path)
    reader = mine(layout)
    entries, problems, _ = read(reader, tmp_path)
    assert problems == []
    assert [(e.reward, e.step, e.values.get("note")) for _, e in entries] == [(r["r"], r["n"], "x") for r in ROWS]
    for (shard, entry), row in zip(reversed(entries), reversed(ROWS), strict=True):
        trajectory = reader.load(tmp_path, [locator(shard, entry)])
        assert [message["content"] for message in trajectory.messages] == [row["q"], row["a"]]
        assert {name: trajectory.record[name] for name in row} == row
        assert json.loads(trajectory.raw)["note"] in ("x", ["x"])


@pytest.mark.parametrize(
    ("container", "is_sealed"),
    [*((name, False) for name in WRITERS), *((name, True) for name in ("lines", "array", "columns", "singletons"))],
)
def test_messages_are_read_alone_from_an_open_file(container: str, is_sealed: bool, tmp_path: Path) -> None:
    write, layout = WRITERS[container]
    write(tmp_path)
    reader = mine(layout)
    entries = read(reader, tmp_path)[0]
    if is_sealed:
        seal(tmp_path / entries[0][0].path)
    with open_shard(tmp_path, entries[0][0].path) as opened:
        messages = reader.messages(tmp_path, opened)
        found = [[message["content"] for message in messages(locator(*one))] for one in reversed(entries)]
    assert found == [[row["q"], row["a"]] for row in reversed(ROWS)]


@pytest.mark.parametrize("container", ["lines", "array"])
def test_a_place_is_the_bytes_of_its_record(container: str, tmp_path: Path) -> None:
    WRITERS[container][0](tmp_path)
    for shard, entry in read(mine(), tmp_path)[0]:
        data = (tmp_path / shard.path).read_bytes()[entry.byte_offset : entry.byte_offset + entry.byte_length]
        assert json.loads(data)["n"] == entry.step


@pytest.mark.parametrize("chunk", [1, 2, 7, 64])
def test_an_array_is_framed_whatever_the_size_of_a_piece(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rltracer_sqlite.sources.table.framing.PIECE", chunk)
    rows = [{"q": 'say "[" and \\', "a": "}{]", "r": 1}, {"q": "é\\\\", "a": {"b": [[1], {}]}["b"] and "x", "r": 2}]
    (tmp_path / "rows.json").write_text(" \n" + json.dumps(rows), encoding="utf-8")
    assert [entry.reward for _, entry in read(mine(), tmp_path)[0]] == [1.0, 2.0]


def test_an_array_without_an_end_says_so(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps(ROWS)[:-20])
    entries, problems, _ = read(mine(), tmp_path)
    assert len(entries) == len(ROWS) - 1
    assert ["no end" in problem.reason for problem in problems] == [True]


def test_columns_of_different_lengths_are_a_problem(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", {"q": ["a", "b"], "a": ["x"]}, {"q": ["a"], "a": ["x"]})
    entries, problems, _ = read(mine('layout = "columns"'), tmp_path)
    assert [entry.line for _, entry in entries] == [2]
    assert [(p.line, "q 2, a 1" in p.reason) for p in problems] == [(1, True)]


def test_a_list_of_two_is_no_list_of_one(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", {"q": ["a", "b"], "a": ["x"]})
    entries, problems, _ = read(mine('layout = "singletons"'), tmp_path)
    assert (entries, ["column q" in problem.reason for problem in problems]) == ([], [True])


def scan_from(reader: TableSource, root: Path, start: Position) -> tuple[list[Entry], Position]:
    (shard,) = reader.shards(root)
    found = list(reader.scan(root, shard, start))
    assert isinstance(found[-1], Position)
    return [one for one in found if isinstance(one, Entry)], found[-1]


def test_a_growing_file_is_read_on_from_its_position(tmp_path: Path) -> None:
    path, reader = tmp_path / "rows.jsonl", mine()
    lines = [json.dumps(row) + "\n" for row in ROWS]
    path.write_text(lines[0] + lines[1][:9])
    first, reached = scan_from(reader, tmp_path, Position())
    assert ([entry.line for entry in first], reached.line, reached.waiting) == ([1], 1, 9)
    path.write_text("".join(lines[:4]))
    later, reached = scan_from(reader, tmp_path, reached)
    assert [(entry.line, entry.step) for entry in later] == [(2, 1), (3, 2), (4, 3)]
    assert reached == (path.stat().st_size, 4, 0)


def test_a_last_line_without_a_newline_is_a_row_and_counted_once(tmp_path: Path) -> None:
    path, reader = tmp_path / "rows.jsonl", mine()
    path.write_text(json.dumps(ROWS[0]) + "\n" + json.dumps(ROWS[1]))
    first, reached = scan_from(reader, tmp_path, Position())
    assert ([entry.line for entry in first], reached) == ([1, 2], Position(path.stat().st_size, 2))
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS[:3]))
    later, reached = scan_from(reader, tmp_path, reached)
    assert [(entry.line, entry.step) for entry in later] == [(3, 2)]


@pytest.mark.parametrize("container", WRITERS)
def test_a_position_between_batches_loses_nothing(
    container: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined, "COMMIT_RECORDS", 2)
    write, layout = WRITERS[container]
    write(tmp_path)
    (shard,) = mine(layout).shards(tmp_path)
    found = list(mine(layout).scan(tmp_path, shard))
    positions = [one for one in found if isinstance(one, Position)]
    assert len(positions) >= 2
    again = list(mine(layout).scan(tmp_path, shard, positions[0]))
    before = found[: found.index(positions[0])]
    uids = {one.uid for one in [*before, *again] if isinstance(one, Entry)}
    assert uids == {one.uid for one in found if isinstance(one, Entry)}


def test_packed_lines_are_read_and_are_one_shard(tmp_path: Path) -> None:
    as_lines(tmp_path)
    seal(tmp_path / "rows.jsonl", keep=True)
    assert [shard.path for shard in mine().shards(tmp_path)] == ["rows.jsonl"]
    (tmp_path / "rows.jsonl").unlink()
    (shard, entry) = read(mine(), tmp_path)[0][3]
    assert mine().load(tmp_path, [locator(shard, entry)]).record == ROWS[3]


def test_what_fits_nothing_is_told_with_the_columns_that_are_missing(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", ROWS[0], {"q": "x", "b": 1}, {"q": "y"}, [1], 5, ROWS[1])
    entries, problems, _ = read(mine(), tmp_path)
    assert [entry.line for _, entry in entries] == [1, 6]
    assert [(p.line, p.reason.split(":")[0]) for p in problems] == [
        (2, "2 records that are no trajectory"), (4, "not readable"), (5, "not readable")]  # fmt: skip
    assert "no column a; its columns: q, b" in problems[0].reason


def test_a_file_of_something_else_is_left_aside(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", *({"loss": n} for n in range(30)))
    (shard,) = mine().shards(tmp_path)
    with pytest.raises(NotRollouts, match="no column q, a; its columns: loss"):
        list(mine().scan(tmp_path, shard))


def test_a_header_line_does_not_hide_the_rows(tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", {"type": "header"}, *ROWS)
    entries, problems, asides = read(mine(), tmp_path)
    assert (len(entries), len(problems), asides) == (6, 1, [])


def test_an_untouched_pointer_of_git_lfs_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert read(mine(), tmp_path)[2] == ["a Git LFS pointer instead of the file itself; run git lfs pull"]


@pytest.mark.parametrize(
    "column",
    [{"r": "many"}, {"r": {"a": 1}}, {"n": "x"}, {"n": 1e300}],
)
def test_a_value_of_the_wrong_kind_is_missing_and_told(column: dict[str, Any], tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", {**ROWS[1], **column})
    (_, entry), problems = read(mine(), tmp_path)[0][0], read(mine(), tmp_path)[1]
    assert None in (entry.reward, entry.step)
    assert ["read in part: column" in problem.reason for problem in problems] == [True]


@pytest.mark.parametrize("column", [{"q": 5}, {"q": [3]}, {"a": [{"role": "assistant"}, "x"]}])
def test_a_conversation_of_the_wrong_kind_is_a_problem(column: dict[str, Any], tmp_path: Path) -> None:
    write_lines(tmp_path / "rows.jsonl", ROWS[0], {**ROWS[1], **column})
    entries, problems, _ = read(mine(), tmp_path)
    assert ([entry.line for _, entry in entries], [problem.line for problem in problems]) == ([1], [2])


def test_a_row_that_has_changed_is_not_shown_as_another(tmp_path: Path) -> None:
    as_lines(tmp_path)
    reader = mine()
    shard, entry = read(reader, tmp_path)[0][2]
    (tmp_path / "rows.jsonl").write_text("x" * 5000)
    with pytest.raises(LocatorError, match="has changed since it was indexed"):
        reader.load(tmp_path, [locator(shard, entry)])
    with (
        open_shard(tmp_path, shard.path) as opened,
        pytest.raises(LocatorError, match="has changed since it was indexed"),
    ):
        reader.messages(tmp_path, opened)(locator(shard, entry))


def test_a_recorded_id_is_the_uid_and_is_checked(tmp_path: Path) -> None:
    reader = mapping_source_from_text(MAPPING.format(layout="").replace('step = "n"', 'id = "n"'))
    as_lines(tmp_path)
    shard, entry = read(reader, tmp_path)[0][2]
    assert entry.uid == "2"
    write_lines(tmp_path / "rows.jsonl", *({**row, "n": row["n"] + 1} for row in ROWS))
    with pytest.raises(LocatorError, match="another record"):
        reader.load(tmp_path, [locator(shard, entry)])
    with open_shard(tmp_path, shard.path) as opened, pytest.raises(LocatorError, match="another record"):
        reader.messages(tmp_path, opened)(locator(shard, entry))


@pytest.mark.parametrize(("container", "line"), [("parquet", 99), ("parquet", 0), ("sqlite", 99), ("sqlite", 2**70)])
def test_a_row_number_that_is_not_there(container: str, line: int, tmp_path: Path) -> None:
    WRITERS[container][0](tmp_path)
    shard, entry = read(mine(), tmp_path)[0][0]
    with pytest.raises(LocatorError):
        mine().load(tmp_path, [replace(locator(shard, entry), line=line)])


@pytest.mark.threat("T6")
@pytest.mark.parametrize(
    "statement",
    [
        "create view rows as select 'q' as q, 'a' as a",
        "create virtual table rows using fts5(q, a)",
        "create table x(q)",
    ],
)
def test_only_a_table_of_a_database_is_read(statement: str, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "rows.db")
    connection.execute(statement)
    connection.close()
    shard = Shard("rows.db", "rows.db", "sqlite")
    with pytest.raises(NotRollouts, match="no table 'rows'"):
        list(mine().scan(tmp_path, shard))


@pytest.mark.threat("T5")
def test_a_damaged_file_is_one_problem(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing else PAR1")
    assert [problem.reason.startswith("not readable from row 1 on") for problem in read(mine(), tmp_path)[1]] == [True]
    (tmp_path / "b.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 600)
    with pytest.raises(LocatorError):
        list(mine().scan(tmp_path, Shard("b.db", "b.db", "sqlite")))


def test_a_link_that_leads_out_of_the_run_is_not_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside.jsonl", tmp_path / "run"
    root.mkdir()
    write_lines(outside, *ROWS)
    (root / "rows.jsonl").symlink_to(outside)
    (root / "rows.db").symlink_to(outside)
    for name, layout in (("rows.jsonl", "lines"), ("rows.db", "sqlite")):
        with pytest.raises(LocatorError, match="leads outside"):
            list(mine().scan(root, Shard(name, name, layout)))


def test_the_problems_of_a_kind_are_told_once(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"q": "x", "a": "y", "r": NaN}\n' * 5)
    entries, problems, _ = read(mine(), tmp_path)
    assert [entry.reward for _, entry in entries] == [None] * 5
    assert [isinstance(p, Problem) and p.reason.endswith("(and 4 more)") for p in problems] == [True]
