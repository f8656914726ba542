"""What the number of a record in its file is of."""

from __future__ import annotations

from typing import Any

import pytest

from rltracer_sqlite.sources.numbering import numbered


@pytest.mark.parametrize(
    ("file", "line", "item", "words"),
    [
        ("step_1/traces.jsonl", 1234, None, "line 1,234"),
        ("stream/0.jsonl.zst", 2, 1, "line 2 · trajectory 2 in it"),
        ("rollouts.bin", 6, None, "sequence 6"),
        ("rank_0.bin", 2, 0, "sequence 1 of micro batch 2"),
        ("rank_0.bin.zst", 2, 0, "sequence 1 of micro batch 2"),
        ("rank_0.pt", 2, 3, "sequence 4"),
        ("a.PARQUET", 8, None, "row 8"),
        ("a.db", 8, 1, "row 8 · trajectory 2 in it"),
        ("results.json", None, 1, "trajectory 2 of the file"),
        ("x.jsonl", None, None, ""),
        ("x.jsonl", "<b>", "y", ""),
    ],
)
def test_a_record_is_told_by_what_its_number_is_of(file: str, line: Any, item: Any, words: str) -> None:
    assert numbered(file, line, item) == words
