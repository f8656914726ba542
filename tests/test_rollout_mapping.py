"""A mapping of one's own names the rollout and the output of a row; what is no such number is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources.table.rollouts import APART
from tests.indexing import index, rows
from tests.rollout_rows import mine
from tests.table_rows import write_lines, write_parquet
from tests.test_table_presets import locator, read


def test_a_mapping_of_ones_own_may_name_the_rollout_and_the_output(tmp_path: Path) -> None:
    made = [{"id": f"r{n}", "tokens": 5, "session": n // 2, "part": n % 2, "score": 1} for n in range(4)]
    texts = [{"input": "Why?", "output": f"so {n}", **row} for n, row in enumerate(made)]
    write_lines(tmp_path / "x.jsonl", *texts)
    reader = mine('id = "id"', 'completion_tokens = "tokens"')
    found = read(reader, tmp_path)[0]
    assert [(entry.uid, entry.branches, entry.completion_tokens) for _, entry in found] == [
        ("r0", 2, 10),
        ("r2", 2, 10),
    ]
    trajectory = reader.load(tmp_path, [locator(*found[1])])
    assert trajectory.messages[-1]["content"] == "so 3"
    # A text that cannot be split may hold calls.
    assert [trajectory.metadata["tool_calls"], *(entry.tool_calls for _, entry in found)] == [None] * 3


def test_numbers_that_pandas_writes_and_numbers_of_no_output(tmp_path: Path) -> None:
    made = [{"session": 1.0, "part": 0.0}, {"session": 1, "part": 1}, {"session": 1.0, "part": 2.5}]
    write_lines(tmp_path / "x.jsonl", *({"input": "Why?", "output": "so", "score": 1, **row} for row in made))
    found, problems, _ = read(mine(), tmp_path)
    assert [entry.branches for _, entry in found] == [2, 1]
    told = "read in part: the number of an output: expected a whole number, found 2.5; it is counted alone"
    assert [problem.reason for problem in problems] == [told]


@pytest.mark.parametrize(("part", "found"), [(-1, "-1"), (True, "boolean"), ([1], "list"), ("x", None), (None, None)])
def test_a_value_that_is_no_number_of_an_output_is_told(part: Any, found: str | None, tmp_path: Path) -> None:
    write_lines(tmp_path / "x.jsonl", {"input": "Why?", "output": "so", "score": 1, "session": 1, "part": part})
    entries, problems, _ = read(mine(), tmp_path)
    assert len(entries) == 1
    assert [f"found {found};" in problem.reason for problem in problems] == [True] * (found is not None)


def test_sums_that_no_index_holds_are_not_recorded(tmp_path: Path) -> None:
    made = [{"tokens": 2**62, "took": 1e308, "session": 1, "part": n, "score": 1} for n in range(2)]
    write_lines(tmp_path / "x.jsonl", *({"input": "Why?", "output": f"so {n}", **row} for n, row in enumerate(made)))
    index(tmp_path / "x.sqlite", tmp_path, source=mine('completion_tokens = "tokens"', 'seconds = "took"'))
    found = rows(tmp_path / "x.sqlite", "select branches, completion_tokens, seconds from trajectories")
    assert found == [(2, None, None)]


def test_only_lines_are_put_together(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    made = [{"input": "Why?", "output": f"so {n}", "session": 1, "part": n, "score": 1.0} for n in range(2)]
    write_parquet(tmp_path / "x.parquet", made)
    found, problems, _ = read(mine(), tmp_path)
    assert [entry.branches for _, entry in found] == [1, 1]
    assert [APART in problem.reason for problem in problems] == [True]
