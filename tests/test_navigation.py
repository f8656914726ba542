"""RLTracer › RolloutStep › PromptGroup › TrajectoryRef › Trajectory: its names, and that it is as lazy as it says."""

from __future__ import annotations

import os
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite import LocatorError, PrimeRLAdapter, RLTracer, Trajectory, open_run
from rltracer_sqlite.sources import files, readers
from rltracer_sqlite.sources.base import SourceError
from tests.indexing import index
from tests.layouts import append, message, trace

FILE = "rollouts/step_{step}/train/all/traces.jsonl"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for step in (1, 2, 3):
        records = [
            trace(
                id=f"{step}-{number}",
                messages=[
                    message("user", f"question {number // 2}"),
                    message("assistant", "yes", reasoning_content="…"),
                ],
                rewards={"exact": {"score": 1.0, "weight": 0.5}},
                metrics={"num_turns": 1.0},
                token_ids=True,
            )
            for number in range(4)
        ]
        append(tmp_path / "run" / FILE.format(step=step), *records)
    return tmp_path / "run"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every shard that is opened, and every read of it: (path, bytes)."""
    found: list[tuple[str, int]] = []
    plain_open, plain_pread, plain_read_into = files.open_inside, readers.PlainFile.pread, readers.PlainFile.read_into

    def open_inside(root: Path, path: str) -> int:
        descriptor = plain_open(root, path)
        found.append((path, 0))
        return descriptor

    def pread(self: readers.PlainFile, length: int, offset: int) -> bytes:
        data = plain_pread(self, length, offset)
        found.append((found[-1][0], len(data)))
        return data

    def read_into(self: readers.PlainFile, target: memoryview, offset: int) -> int:
        count = plain_read_into(self, target, offset)
        found.append((found[-1][0], count))
        return count

    monkeypatch.setattr(files, "open_inside", open_inside)
    monkeypatch.setattr(readers.PlainFile, "pread", pread)
    monkeypatch.setattr(readers.PlainFile, "read_into", read_into)
    return found


def test_listing_steps_opens_no_shard(run: Path, tmp_path: Path, opened: list[tuple[str, int]]) -> None:
    tracer = RLTracer(PrimeRLAdapter(rollout_dir=run / "rollouts", index_path=tmp_path / "x.sqlite"))
    assert [step.number for step in tracer.steps()] == [1, 2, 3]
    assert tracer.step(2).number == 2
    assert opened == []
    assert not (tmp_path / "x.sqlite").exists()


def test_prompts_read_only_the_shards_of_their_step(run: Path, tmp_path: Path, opened: list[tuple[str, int]]) -> None:
    groups = RLTracer(PrimeRLAdapter(run, index_path=tmp_path / "x.sqlite")).step(2).prompts()
    assert {path for path, _ in opened} == {FILE.format(step=2)}
    assert [(group.count, group.preview, len(group)) for group in groups] == [
        (2, "question 0", 2),
        (2, "question 1", 2),
    ]
    opened.clear()
    RLTracer(PrimeRLAdapter(run, index_path=tmp_path / "x.sqlite")).step(2).prompts()
    assert opened == []


def test_load_reads_only_the_bytes_of_its_record(run: Path, tmp_path: Path, opened: list[tuple[str, int]]) -> None:
    reference = RLTracer(PrimeRLAdapter(run, index_path=tmp_path / "x.sqlite")).step(3).prompts()[1].trajectory(0)
    opened.clear()
    trajectory = reference.load()
    length = trajectory.metadata["locator"]["byte_length"]
    assert opened == [(FILE.format(step=3), 0), (FILE.format(step=3), length)]
    assert (run / FILE.format(step=3)).read_bytes().count(trajectory.raw) == 1


def test_an_id_that_no_step_read_so_far_has_is_looked_for_in_all_of_the_run(
    run: Path, tmp_path: Path, opened: list[tuple[str, int]]
) -> None:
    tracer = RLTracer(PrimeRLAdapter(run, index_path=tmp_path / "x.sqlite"))
    assert tracer.trajectory(5).load().metadata["uid"] == "2-0"
    opened.clear()
    assert tracer.trajectory(6).id == 6
    assert opened == [], "it is known"
    with pytest.raises(LocatorError, match=r"has no trajectory 13; it has 12, from 1 to 12\."):
        tracer.trajectory(13).load()
    append(run / FILE.format(step=4), trace([message("user", "?")], id="late"))
    assert tracer.trajectory(13).load().metadata["uid"] == "late"


def test_ids_are_given_as_steps_are_read(run: Path, tmp_path: Path) -> None:
    tracer = RLTracer(PrimeRLAdapter(run, index_path=tmp_path / "x.sqlite"))
    first = tracer.step(3).prompts()[0].trajectory(0)
    assert (first.id, first.load().metadata["uid"], tracer.trajectory(1).load().metadata["uid"]) == (1, "3-0", "3-0")
    assert tracer.trajectory(5).load().metadata["uid"] == "1-0"
    assert first.load().metadata["uid"] == "3-0"


def test_a_reference_without_its_index_reads_nothing_since_ids_could_be_others(run: Path, tmp_path: Path) -> None:
    kept = pickle.dumps(RLTracer(PrimeRLAdapter(run, index_path=tmp_path / "x.sqlite")).trajectory(5))
    (tmp_path / "x.sqlite").unlink()
    with pytest.raises(
        SourceError, match=r"Nothing of .* has been read yet, .* RLTracer\.step\(N\)\.prompts\(\) reads"
    ):
        pickle.loads(kept).load()


def test_metadata_says_what_is_recorded(run: Path, tmp_path: Path) -> None:
    trajectory = (
        RLTracer(PrimeRLAdapter(run, index_path=tmp_path / "x.sqlite")).step(1).prompts()[0].trajectory(0).load()
    )
    assert [message["role"] for message in trajectory.messages] == ["user", "assistant"]
    facts = trajectory.metadata
    assert facts["reward"] == 0.5
    assert facts["rewards"] == {"exact": {"score": 1.0, "weight": 0.5}}
    assert facts["metrics"] == {"num_turns": 1.0}
    assert facts["advantage"] is None
    assert facts["logprobs"]["count"] > 0
    assert facts["logprobs"]["min"] <= facts["logprobs"]["mean"] < 0
    assert (facts["step"], facts["split"], facts["tool_calls"]) == (1, "train", 0)
    assert facts["completion"]["turns"] == 1
    assert facts["locator"]["line"] == 1
    assert {"timing", "errors", "env", "uid"} <= set(facts)


def test_a_prompt_is_found_by_the_beginning_of_its_key(run: Path, tmp_path: Path) -> None:
    step = RLTracer(PrimeRLAdapter(run, index_path=tmp_path / "x.sqlite")).step(1)
    key = step.prompts()[1].key
    assert step.prompt(key[:12]).key == key
    with pytest.raises(KeyError, match="2 prompts"):
        step.prompt("")


def test_a_prompt_parser_makes_the_previews(run: Path, tmp_path: Path) -> None:
    adapter = PrimeRLAdapter(run, index_path=tmp_path / "x.sqlite")
    tracer = RLTracer(adapter, prompt_parser=lambda messages: f"<{messages[0]['content'][-1]}>")
    assert [group.preview for group in tracer.step(1).prompts()] == ["<0>", "<1>"]


def test_any_object_with_the_five_methods_is_an_adapter() -> None:
    class Mine:
        rollout_dir = Path("anywhere")

        def list_steps(self) -> list[int]:
            return [4]

        def ensure_step_indexed(self, step: int) -> None:
            self.indexed = step

        def list_prompts(self, step: int) -> list[tuple[str, int, str]]:
            return [("key", 1, "preview")]

        def list_trajectory_ids(self, step: int, prompt_key: str) -> list[int]:
            return [17]

        def load_trajectory(self, trajectory_id: int) -> Trajectory:
            return Trajectory([{"role": "user", "content": str(trajectory_id)}], {})

    adapter = Mine()
    [step] = RLTracer(adapter).steps()
    assert step.prompts()[0].trajectory(0).load().messages[0]["content"] == "17"
    assert adapter.indexed == 4


def test_the_run_is_never_written_to(run: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in run.rglob("*"))
    for step in RLTracer(PrimeRLAdapter(run)).steps():
        step.prompts()
    assert sorted((path, path.stat().st_mtime_ns) for path in run.rglob("*")) == before


def test_an_index_opens_by_itself(run: Path, tmp_path: Path) -> None:
    index(tmp_path / "x.sqlite", run)
    from rltracer_sqlite.remembered_roots import remember_root

    remember_root(run)
    os.remove(run / FILE.format(step=3))
    tracer = RLTracer(open_run(tmp_path / "x.sqlite"))
    assert [step.number for step in tracer.steps()] == [1, 2, 3]
    assert tracer.step(1).prompts()[0].trajectory(0).load().messages
    with pytest.raises(LocatorError, match="not there any more"):
        tracer.step(3).prompts()[0].trajectory(0).load()
    with pytest.raises(SourceError, match="has no run 'other'"):
        open_run(tmp_path / "x.sqlite", "other")


def with_statement(tracer: RLTracer) -> None:
    with tracer as same:
        assert same is tracer


ENDS: dict[str, Callable[[list[Any]], Any]] = {
    "with": lambda kept: with_statement(kept[0]),
    "close": lambda kept: kept[0].close(),
    "with the adapter": lambda kept: kept[0].adapter.__exit__(None, None, None),
    "forgotten": list.clear,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_what_was_opened_is_closed(run: Path, tmp_path: Path, end: Callable[[list[Any]], Any]) -> None:
    index(tmp_path / "x.sqlite", run)
    kept = [RLTracer(tmp_path / "x.sqlite")]
    assert len(kept[0].steps()) == 3
    connection = kept[0].adapter.connection  # type: ignore[attr-defined]
    end(kept)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("select 1")
    for tracer in kept:
        assert len(tracer.steps()) == 3, "it may be used again"
        tracer.close()
        tracer.close()


def test_an_adapter_needs_no_close(run: Path) -> None:
    class Five:
        rollout_dir = run

        def list_steps(self, *_: Any) -> list[int]:
            return [7]

        ensure_step_indexed = list_prompts = list_trajectory_ids = load_trajectory = list_steps

    with RLTracer(Five()) as tracer:  # type: ignore[arg-type]
        assert [step.number for step in tracer.steps()] == [7]
