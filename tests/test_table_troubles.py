"""Rows and files that are not as a mapping says: told, left aside, and never taken for others."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources.base import LocatorError, NotRollouts, Problem, Shard
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.table import mapping_source_from_text
from tests.table_containers import MAPPING, ROWS, WRITERS, as_lines, mine
from tests.table_rows import write_lines
from tests.table_scans import locator, read


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


def test_rewards_whose_sum_is_beyond_all_numbers_have_none_and_it_is_told(tmp_path: Path) -> None:
    rows = [{"q": "x", "a": "y", "r1": 1e308, "r2": other} for other in (1e308, 1.0)]
    write_lines(tmp_path / "rows.jsonl", *rows)
    text = MAPPING.format(layout="").partition("[columns]")[0] + '[rewards]\ncolumns = ["r1", "r2"]\n'
    entries, problems, _ = read(mapping_source_from_text(text), tmp_path)
    assert [entry.reward for _, entry in entries] == [None, 1e308]
    told = "read in part: the sum of its rewards: a number that is not finite, taken as missing"
    assert [(problem.line, problem.reason) for problem in problems] == [(1, told)]
