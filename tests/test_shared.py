"""A tracer that several threads share, and what of it is sent to other processes."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rltracer_sqlite import RLTracer
from rltracer_sqlite.tokens.streams import Tokens
from tests.indexing import index
from tests.layouts import append, message, trace
from tests.watching import ALL, at_step, record


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for step in (1, 2, 3):
        append(tmp_path / "run" / at_step(step), *(record(f"{step}-{number}") for number in range(3)))
    return tmp_path / "run"


def test_closing_does_not_disturb_what_another_thread_asks(run: Path, tmp_path: Path) -> None:
    """Where it does, the process ends with a fault of its memory."""
    index(tmp_path / "x.sqlite", run)
    with RLTracer(tmp_path / "x.sqlite") as tracer, ThreadPoolExecutor(3) as threads:
        found = threads.map(lambda number: tracer.trajectory(number % 9 + 1).load().metadata["uid"], range(90))
        asked = threads.submit(list, found)
        while not asked.done():
            tracer.close()
        assert len(set(asked.result())) == 9


def test_threads_read_the_steps_of_a_run_as_they_are_indexed(run: Path) -> None:
    with RLTracer(run) as tracer, ThreadPoolExecutor(4) as threads:

        def read(step: int) -> list[str]:
            refs = [ref for prompt in tracer.step(step).prompts() for ref in prompt.trajectories()]
            return [ref.load().metadata["uid"] for ref in refs]

        assert list(threads.map(read, [1, 2, 3] * 3)) == [[f"{step}-{n}" for n in range(3)] for step in (1, 2, 3)] * 3


def test_what_was_found_is_sent_to_another_process(run: Path, tmp_path: Path) -> None:
    append(run / ALL, trace([message("user", "?"), message("assistant", "!")], id="ids", token_ids=True))
    index(tmp_path / "x.sqlite", run)
    with RLTracer(tmp_path / "x.sqlite") as tracer:
        step = tracer.step(1)
        for one in (tracer, step, step.prompts()[0], tracer.trajectory(1)):
            assert repr(pickle.loads(pickle.dumps(one))) == repr(one)
        ref = pickle.loads(pickle.dumps(tracer.trajectory(1)))
        loaded = ref.load()
        assert pickle.loads(pickle.dumps(loaded)) == loaded == tracer.trajectory(1).load()
        ref.adapter.close()
        tokens = [pickle.loads(pickle.dumps(tracer.trajectory(n).load())).tokens for n in range(1, 11)]
    assert [type(one) for one in tokens].count(Tokens) == 1
