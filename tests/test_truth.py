"""The expected answer: what each system records of it, as a text, and that no copy of it is in an index."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export.rows import traced_rl_row
from rltracer_sqlite.index.database import open_index
from rltracer_sqlite.loading import load_trajectory
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.trajectory import Trajectory
from rltracer_sqlite.truth import UNSHOWN, recorded_truth, truth_text
from tests.indexing import dump, index, rows
from tests.layouts import ABSENT, append, episode, message, trace, v0_row
from tests.table_rows import write_parquet
from tests.table_samples import SAMPLES

TRAJECTORIES = "rollouts/step_1/train/all/traces.jsonl"
ASKED = [message("user", "6 * 7?"), message("assistant", "42")]
EXPECTED = {
    "verl": "42", "trl-text": None, "trl-messages": None, "ms-swift": None, "ms-swift-ray": None, "nemo-rl": None,
    "nemo-gym": None, "skyrl": "42", "areal": None, "roll-rlvr": "42", "roll-agentic": None, "open-instruct": ["42"],
}  # fmt: skip


def loaded(folder: Path, run: Path) -> list[Trajectory]:
    index(folder / "x.sqlite", run)
    with closing(open_index(folder / "x.sqlite")) as connection:
        numbers = connection.execute("select id from trajectories order by id").fetchall()
        return [load_trajectory(connection, number, Roots([run])) for (number,) in numbers]


def truths(folder: Path, run: Path) -> list[Any]:
    return [one.metadata["truth"] for one in loaded(folder, run)]


@pytest.mark.parametrize("name", EXPECTED)
def test_each_system_records_it_in_its_own_place(tmp_path: Path, name: str) -> None:
    written = SAMPLES[name][1](tmp_path / "run")
    assert truths(tmp_path, tmp_path / "run") == [EXPECTED[name]] * len(written)


@pytest.mark.parametrize(
    ("record", "truth"),
    [
        (trace(ASKED, task={"type": "T", "data": {"idx": 1, "answer": "42"}}), "42"),
        ({**trace(ASKED), "task": {"idx": 1, "answer": 42}}, 42),  # until 2026-07-09
        (trace(ASKED, task={"type": "T", "data": {"answer": None, "solution": ["a", "b"]}}), ["a", "b"]),
        (trace(ASKED, task={"type": "T", "data": {"answer": ""}}), None),
        ({**trace(ASKED), "task": {"data": {"idx": 1}, "answer": "beside"}}, None),
        (episode([{**trace(ASKED), "task": None}], task={"answer": "42"}, step=1), "42"),
        (v0_row(ASKED, answer="42", task="arithmetic", solution="not of the task"), "42"),
        (v0_row(ASKED, answer="", info={"answer": "42"}), None),
        (v0_row(ASKED, answer=ABSENT), None),
    ],
    ids=["data", "root", "solution", "empty", "beside the data", "episode", "v0", "v0 empty", "v0 absent"],
)
def test_prime_rl_records_it_in_the_task_or_in_a_row(tmp_path: Path, record: dict[str, Any], truth: Any) -> None:
    file = "rollouts/step_1/train_rollouts.jsonl" if "completion" in record else TRAJECTORIES
    append(tmp_path / "run" / file, record)
    assert truths(tmp_path, tmp_path / "run") == [truth]


def test_trl_logs_it_by_its_own_accuracy_rewards(tmp_path: Path) -> None:
    row = {"step": 3, "prompt": "6 * 7?", "completion": "42", "accuracy_reward": 1.0, "advantage": 0.0}
    write_parquet(tmp_path / "run/completions_00003.parquet", [{**row, "solution": r"\boxed{42}"}])
    assert truths(tmp_path, tmp_path / "run") == [r"\boxed{42}"]


@pytest.mark.parametrize("name", ["prime-rl", "verl", "chat"])
def test_no_copy_of_it_is_in_the_index(tmp_path: Path, name: str) -> None:
    secret = "the answer of nobody else"
    records: dict[str, tuple[str, dict[str, Any]]] = {
        "prime-rl": (TRAJECTORIES, trace(ASKED, task={"type": "T", "data": {"answer": secret}})),
        "verl": ("1.jsonl", {"input": "q", "output": "a", "gts": secret, "score": 1.0, "step": 1}),
        "chat": ("a.jsonl", {"messages": ASKED, "reward": 1.0, "answer": secret}),
    }
    file, record = records[name]
    append(tmp_path / "run" / file, record)
    index(tmp_path / "x.sqlite", tmp_path / "run")
    assert rows(tmp_path / "x.sqlite", "select count(*) from trajectories") == [(1,)]
    assert secret not in "".join(dump(tmp_path / "x.sqlite"))


def test_an_export_for_rl_has_the_same(tmp_path: Path) -> None:
    append(
        tmp_path / "run" / TRAJECTORIES, trace(ASKED, id="a", task={"type": "T", "data": {"answer": "", "target": 7}})
    )
    [whole] = loaded(tmp_path, tmp_path / "run")
    assert (whole.metadata["truth"], traced_rl_row(whole, None, None)["answer"]) == (7, 7)


@pytest.mark.parametrize(
    ("truth", "text"),
    [
        ("42", "42"), ([["42"]], "42"), (42, "42"), (0, "0"), (False, "false"), (["a", "é"], '["a", "é"]'),
        ({"in": 1}, '{"in": 1}'), (None, None), ("", None), ([], None), ([""], None), (float("nan"), "NaN"),
    ],
    ids=str,
)  # fmt: skip
def test_it_is_shown_as_a_text(truth: Any, text: str | None) -> None:
    assert truth_text(truth) == text


def test_one_that_cannot_be_written_is_said_to_be_there() -> None:
    truth: Any = {}
    for _ in range(100_000):
        truth = {"a": truth}
    assert truth_text(truth) == UNSHOWN
    while truth:
        truth = truth["a"]  # an object of this depth cannot be freed at once
    assert [truth_text(one) for one in (10**5000, {(1, 2): "a key of another kind"})] == [UNSHOWN] * 2


@pytest.mark.parametrize("task", [None, "name", 3, {"data": "text", "answer": "42"}, {"data": {}, "answer": "42"}])
def test_a_task_of_another_shape_is_read_as_far_as_it_goes(task: Any) -> None:
    inside = isinstance(task, dict) and task["data"] == "text"
    assert recorded_truth(task, "beside") == ("42" if inside else "beside")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("gts", "NaN"), ("gts", "1e999"), ("gts", "9" * 5000), ("score", "NaN"), ("score", "-1e999"),
        ("score", "9" * 400), ("score", "9" * 5000),
    ],
    ids=lambda value: value[:6],
)  # fmt: skip
def test_a_number_that_no_double_holds_is_told(tmp_path: Path, name: str, written: str) -> None:
    values = {"gts": '"42"', "score": "1.0", name: written}
    line = ", ".join(f'"{key}": {value}' for key, value in values.items())
    (tmp_path / "run").mkdir()
    (tmp_path / "run/1.jsonl").write_text(f'{{"input": "q", "output": "a", "step": 1, {line}}}\n', encoding="utf-8")
    [trajectory] = loaded(tmp_path, tmp_path / "run")
    assert trajectory.metadata["truth" if name == "gts" else "reward"] is None
    [(reason,)] = rows(tmp_path / "x.sqlite", "select reason from problems")
    assert "a number that is not finite, taken as missing" in reason
    assert written == "NaN" or f"column {name}:" in reason
