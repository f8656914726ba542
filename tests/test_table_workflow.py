"""The JSONL of verifier workflows, as rltracer 0.1.0 reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite.sources.base import Entry, LocatorError, NotRollouts, Position, Problem
from rltracer_sqlite.sources.workflow import WorkflowSource
from tests.commands import indexed
from tests.indexing import value
from tests.table_conversations import CALLED, write_workflow
from tests.table_rows import said, write_lines
from tests.table_scans import locator


def test_each_record_with_messages_is_a_trajectory(tmp_path: Path) -> None:
    write_workflow(tmp_path)
    reader = WorkflowSource()
    (shard,) = reader.shards(tmp_path)
    found = list(reader.scan(tmp_path, shard))
    entries = [one for one in found if isinstance(one, Entry)]
    assert [(e.line, e.turns, e.tool_calls, e.env, e.step) for e in entries] == [
        (1, 1, 0, "math_check", None), (2, 1, 1, "math_check", None), (3, 1, 0, "math_check", None)]  # fmt: skip
    assert [entry.tools for entry in entries] == [None, '["multiply"]', None]
    assert entries[0].values == {"final_row.rubric.score": 0.5, "final_row.source": "gsm", "id": 3.0}
    loaded = [reader.load(tmp_path, [locator(shard, entry)]) for entry in entries]
    assert [one.messages for one in loaded] == [said("42"), CALLED, said("41")]
    assert ([len(one.tools) for one in loaded], loaded[0].metadata["reward"]) == ([1, 0, 0], None)
    assert loaded[0].raw == (tmp_path / shard.path).read_bytes().splitlines()[0]


def test_records_without_messages_are_told(tmp_path: Path) -> None:
    path = write_workflow(tmp_path)
    with path.open("a") as file:
        file.write('not json\n\n{"final_row": {"rub')
    reader = WorkflowSource()
    (shard,) = reader.shards(tmp_path)
    found = list(reader.scan(tmp_path, shard))
    problems = [(one.line, one.reason.partition(":")[0]) for one in found if isinstance(one, Problem)]
    assert problems == [(4, "not readable"), (5, "not readable"), (6, "not readable")]
    assert found[-1] == Position(path.stat().st_size - 19, 7, 19)
    assert list(reader.scan(tmp_path, shard, found[-1])) == [found[-1]]


def test_a_file_of_something_else_is_left_aside(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", {"final_row": {"answer": "42"}})
    (shard,) = WorkflowSource().shards(tmp_path)
    with pytest.raises(NotRollouts, match=r"without rubric\.messages"):
        list(WorkflowSource().scan(tmp_path, shard))
    assert not WorkflowSource().recognises(tmp_path)


def test_a_file_whose_name_is_no_text_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    path = write_workflow(tmp_path / "run")
    path.with_name(b"\xff.jsonl".decode("utf-8", "surrogateescape")).write_bytes(path.read_bytes())
    done = indexed(tmp_path / "x.sqlite", tmp_path / "run")
    assert r"\udcff.jsonl cannot be read, since its name is not UTF-8" in done.stderr
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories") == 3


def test_a_record_that_has_changed(tmp_path: Path) -> None:
    path, reader = write_workflow(tmp_path), WorkflowSource()
    (shard,) = reader.shards(path)
    entry = next(one for one in reader.scan(path, shard) if isinstance(one, Entry))
    path.write_bytes(b"{" + path.read_bytes()[1:].replace(b"rubric", b"rubrik"))
    with pytest.raises(LocatorError, match="has changed"):
        reader.load(path, [locator(shard, entry)])
