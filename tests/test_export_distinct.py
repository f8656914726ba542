"""Rows of the same content: how many differ, leaving out the others, and which two rollouts are a pair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import ExportError, ExportPreferences, TraceDataExporter
from tests.commands import rltracer
from tests.export_runs import export, indexed, rollout

Record = dict[str, Any]


def said_alike(answer: str, *uids: str, **facts: Any) -> list[Record]:
    """Return rollouts of one prompt that all give the same answer."""
    records = [rollout(uid, **facts) for uid in uids]
    for record in records:
        record["nodes"][-1]["message"]["content"] = answer
    return records


def test_rows_of_the_same_content_are_counted(tmp_path: Path) -> None:
    steps = {1: [*said_alike("42", "a", "b"), rollout("c", "other?")], 2: said_alike("42", "d")}
    database = indexed(tmp_path, steps)
    result = TraceDataExporter(database, ExportPreferences(per_prompt=None, include_provenance=True)).write(
        tmp_path / "o.jsonl"
    )
    assert (result.selected_count, result.row_count, result.distinct_row_count) == (4, 4, 2)
    said = rltracer("export", database, "--per-prompt", "all", "-o", tmp_path / "o.jsonl").stdout
    assert "\nWrote 4 rows, 2 distinct, to " in said
    assert "\nWrote 1 row to " in rltracer("export", database, "--target", 1, "-o", tmp_path / "o.jsonl").stdout


@pytest.mark.parametrize("mode", ["sft", "preference"])
def test_distinct_leaves_out_rows_of_the_same_content(tmp_path: Path, mode: str) -> None:
    failed = said_alike("43", "x", "y", "z", passed=False)
    records = [*said_alike("42", "a", "b"), *failed, rollout("c", "other?")]
    database = indexed(tmp_path, {1: records, 2: said_alike("42", "d")})
    every = export(database, tmp_path / "all.jsonl", mode=mode, per_prompt=None, include_provenance=True)
    kept = export(database, tmp_path / "o.jsonl", mode=mode, per_prompt=None, include_provenance=True, distinct=True)
    assert kept == [every[0], *([every[2]] if mode == "sft" else [])]
    told = json.loads((tmp_path / "o.jsonl.summary.json").read_text())
    left_out = len(every) - len(kept)
    counts = [told[name] for name in ("row_count", "distinct_row_count", "repeated_rows_left_out")]
    assert counts == [len(kept), len(kept), left_out]
    asked = ["--mode", mode, "--per-prompt", "all", "--distinct"]
    output = rltracer("export", database, *asked, "-o", tmp_path / "c.jsonl").stdout
    assert f"Left out {left_out} rows of the same content as one before." in output
    assert f"Wrote {len(kept)} row" in output


def test_rows_are_compared_as_they_are_written(tmp_path: Path) -> None:
    said = [f"The token is ghp_{letter * 36}." for letter in "ab"]
    database = indexed(tmp_path, {1: said_alike(said[0], "a") + said_alike(said[1], "b")})
    assert len(export(database, tmp_path / "o.jsonl", distinct=True)) == 2
    assert len(export(database, tmp_path / "o.jsonl", distinct=True, redact=True)) == 1


def test_a_pair_may_be_of_two_steps_unless_the_window_is_one(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a", passed=False)], 2: [rollout("b")]})
    [pair] = export(database, tmp_path / "o.jsonl", mode="preference", include_provenance=True)
    told = pair["trace_provenance"]
    assert (told["chosen"]["step"], told["rejected"]["step"]) == (2, 1)
    with pytest.raises(ExportError, match="There is no pair"):
        export(database, tmp_path / "o.jsonl", mode="preference", window_size=1)
