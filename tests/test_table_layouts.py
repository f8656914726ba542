"""The containers and layouts of rows: lines, columns, lists of one, JSON arrays, Parquet and SQLite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rltracer_sqlite.sources.base import Entry, Position
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.table import TableSource, joined
from tests.layouts import seal
from tests.table_containers import ROWS, WRITERS, as_lines, mine
from tests.table_rows import write_lines
from tests.table_scans import locator, read


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
    monkeypatch.setattr("rltracer_sqlite.sources.table.json_array.PIECE", chunk)
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
