"""What is one prompt, and what are two: words, hidden tasks, native groups, example ids, empty prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rltracer_sqlite import PrimeRLAdapter, RLTracer
from tests.indexing import index, rows
from tests.layouts import append, message, trace, v0_row

FILE = "run/rollouts/step_1/train/all/traces.jsonl"


def rollout(uid: str, question: str, **extra: Any) -> dict[str, Any]:
    return trace(id=uid, messages=[message("user", question), message("assistant", "…")], **extra)


def prompts(tmp_path: Path, *records: dict[str, Any], file: str = FILE) -> list[list[str]]:
    """Return the uids of each prompt group of step 1, as the navigation API groups them."""
    append(tmp_path / file, *records)
    adapter = PrimeRLAdapter(tmp_path / "run", index_path=tmp_path / "x.sqlite")
    found = []
    for step in RLTracer(adapter).steps():
        found += [[ref.load().metadata["uid"] for ref in group.trajectories()] for group in step.prompts()]
    adapter.close()
    return found


def test_one_prompt_with_two_hidden_tasks_is_two_prompts(tmp_path: Path) -> None:
    tasks = [{"idx": 0, "answer": "crane"}, {"idx": 1, "answer": "slate"}]
    records = [
        rollout(f"{number}", "Guess the word.", task={"type": "Wordle", "data": tasks[number % 2]})
        for number in range(4)
    ]
    assert prompts(tmp_path, *records) == [["0", "2"], ["1", "3"]]


def test_a_task_key_tells_tasks_apart_and_joins_steps(tmp_path: Path) -> None:
    task = {"type": "T", "data": {"answer": "1"}, "key": "word-7"}
    append(tmp_path / FILE, rollout("a", "Guess.", task=task))
    append(tmp_path / FILE.replace("step_1", "step_9"), rollout("b", "Guess.", task={**task, "data": {"answer": "1 "}}))
    index(tmp_path / "x.sqlite", tmp_path / "run")
    assert len(rows(tmp_path / "x.sqlite", "select * from prompts")) == 1
    assert len(rows(tmp_path / "x.sqlite", "select * from prompt_groups")) == 2


def test_one_prompt_as_two_native_groups_is_two_rows_and_one_prompt(tmp_path: Path) -> None:
    records = [rollout(f"{number}", "6 * 7?", info={"group_id": f"g{number % 2}"}, group=None) for number in range(4)]
    assert prompts(tmp_path, *records) == [["0", "1", "2", "3"]]
    assert rows(tmp_path / "x.sqlite", "select group_id, trajectories from prompt_groups order by 1") == [
        ("g0", 2),
        ("g1", 2),
    ]


def test_wrong_and_missing_example_ids_do_not_matter(tmp_path: Path) -> None:
    asked = {"prompt": [message("user", "2 + 2?")], "answer": "4"}
    same = [v0_row(example_id=0, rollout_id="a", **asked), v0_row(example_id=7, rollout_id="b", **asked)]
    other = v0_row(example_id=0, answer="4", rollout_id="c", prompt=[message("user", "another question")])
    missing = v0_row(example_id=None, rollout_id="d", **asked)
    found = prompts(tmp_path, *same, other, missing, file="run/rollouts/step_1/train_rollouts.jsonl")
    assert found == [["a", "b", "d"], ["c"]]


def test_an_empty_prompt_falls_back_on_the_example_id(tmp_path: Path) -> None:
    empty = [v0_row(example_id=number % 2, answer="", rollout_id=f"{number}", prompt=[]) for number in range(4)]
    found = prompts(tmp_path, *empty, file="run/rollouts/step_1/train_rollouts.jsonl")
    assert found == [["0", "2"], ["1", "3"]]
    assert rows(tmp_path / "x.sqlite", "select distinct preview from prompts") == [("(empty prompt)",)]


def test_an_id_that_is_a_truth_value_is_no_example_id(tmp_path: Path) -> None:
    ids = [{"id": recorded, "rollout_id": f"{recorded}"} for recorded in (1, True, None)]
    empty = [v0_row(**one, example_id=None, answer="", prompt=[]) for one in ids]
    prompts(tmp_path, *empty, file="run/rollouts/step_1/train_rollouts.jsonl")
    assert rows(tmp_path / "x.sqlite", "select uid, data_idx from trajectories order by uid") == [
        ("1", 1),
        ("None", None),
        ("True", None),
    ]


def test_the_same_prompt_in_train_and_eval_is_two_groups_with_keys_of_their_own(tmp_path: Path) -> None:
    append(tmp_path / FILE.replace("train", "eval"), rollout("e", "6 * 7?"))
    assert sorted(prompts(tmp_path, rollout("t", "6 * 7?"))) == [["e"], ["t"]]


def test_images_count_by_their_content(tmp_path: Path) -> None:
    def look(uid: str, url: str) -> dict[str, Any]:
        parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
        return trace(id=uid, messages=[message("user", parts), message("assistant", "a cat")])

    pictures = [look("a", "data:image/png;base64,AAAA"), look("b", "data:image/png;base64,BBBB")]
    assert prompts(tmp_path, *pictures, look("c", "data:image/png;base64,AAAA")) == [["a", "c"], ["b"]]
