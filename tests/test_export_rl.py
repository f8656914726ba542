"""Prompt rows for RL: joined to the data they came from, or taken from the traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import ExportError
from rltracer_sqlite.export.rows import DATADEV_COLUMNS
from tests.export_runs import export, indexed, rollout, spec, write_data
from tests.layouts.samples import DELEGATED, PICTURE, trace_of


def joined(tmp_path: Path, idx: Any, change: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return the RL rows of a rollout of "q1" that counts in three rows of data, of which the middle one is changed."""
    database = indexed(tmp_path, {1: [rollout("a", "q1", idx=idx)]})
    data = write_data(tmp_path / "train.jsonl", ["q0", "q1", "q2"])
    if change is not None:
        lines = [json.loads(line) for line in data.read_text().splitlines()]
        lines[1] = {key: value for key, value in {**lines[1], **change}.items() if value is not Ellipsis}
        data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return export(spec(database, rl_data_path=data), tmp_path / "out.jsonl", mode="rl")


def test_rows_are_joined_by_number(tmp_path: Path) -> None:
    [row] = joined(tmp_path, 1)
    assert row["record_id"] == "r1"


@pytest.mark.parametrize(
    ("idx", "change", "sentence"),
    [
        (None, None, r"has no task\.data\.idx"),
        (3, None, r"task\.data\.idx is 3, and .* has 3 rows"),
        (-1, None, "is -1"),
        ("one", None, r"has no task\.data\.idx"),
        (0, None, r"differs from the row .* message 2 is 'q1', and 'q0' in the row"),
        (1, {"answer": ...}, "has no answer"),
        (1, {"tools": "[]"}, "tools of row 1 .* are no list"),
        (1, {"prompt": "q1"}, "is no list of messages"),
        (1, {"prompt": []}, "2 messages, and 0 in the row"),
    ],
)
def test_a_row_that_does_not_fit_fails_the_export(tmp_path: Path, idx: Any, change: Any, sentence: str) -> None:
    (tmp_path / "out.jsonl").write_text("old\n")
    with pytest.raises(ExportError, match=sentence):
        joined(tmp_path, idx, change)
    assert (tmp_path / "out.jsonl").read_text() == "old\n"


@pytest.mark.parametrize("content", ["{not json\n", "[1]\n"])
def test_data_that_is_no_rows_is_a_sentence(tmp_path: Path, content: str) -> None:
    database = indexed(tmp_path, {1: [rollout("a", "q0")]})
    (tmp_path / "train.jsonl").write_text(content)
    with pytest.raises(ExportError, match=r"row 0 of .* is no JSON"):
        export(spec(database, rl_data_path=tmp_path / "train.jsonl"), tmp_path / "out.jsonl", mode="rl")


def test_data_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a", "q0")]})
    with pytest.raises(ExportError, match="does not exist"):
        export(spec(database, rl_data_path=tmp_path / "train.jsonl"), tmp_path / "out.jsonl", mode="rl")


def test_prompts_from_the_traces_have_the_same_columns(tmp_path: Path) -> None:
    record = rollout("a", "q0", calls=1, task={"idx": 0, "name": "task-7", "answer": "42", "source": "made up"})
    [row] = export(spec(indexed(tmp_path, {1: [record]})), tmp_path / "out.jsonl", mode="rl", rl_from_trace=True)
    assert tuple(row) == DATADEV_COLUMNS
    assert (row["answer"], row["record_id"], row["source"], row["output"]) == ("42", "task-7", "made up", None)
    assert [said["role"] for said in row["prompt"]] == ["system", "user"]
    assert row["tools"][0]["function"]["name"] == "bash"


def test_a_run_with_data_is_joined_even_so(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a", "q0")]})
    data = write_data(tmp_path / "train.jsonl", ["q0"])
    [row] = export(spec(database, rl_data_path=data), tmp_path / "out.jsonl", mode="rl", rl_from_trace=True)
    assert row["feedback"] == "good"


def test_the_prompt_is_the_one_of_the_first_answer_not_of_a_sub_agent(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [trace_of(DELEGATED, "a")]})
    [row] = export(spec(database), tmp_path / "o.jsonl", mode="rl", acceptance="any", rl_from_trace=True)
    assert row["prompt"] == [{"role": "user", "content": "Plan a trip"}]


def test_a_prompt_with_a_picture_stays_one(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [trace_of(PICTURE, "a")]})
    [row] = export(spec(database), tmp_path / "o.jsonl", mode="rl", acceptance="any", rl_from_trace=True)
    assert row["prompt"][0]["content"][1]["type"] == "image_url"
