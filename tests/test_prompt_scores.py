"""What the index knows of a step, a prompt group and a trajectory in Python: pass rate, mean reward, split, success."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite import RLTracer, Trajectory
from tests.commands import inspected
from tests.export_runs import indexed, rollout, write_steps
from tests.indexing import index, made_before, rows


class Foreign:
    """An adapter with the five methods alone."""

    rollout_dir = Path("elsewhere")

    def list_steps(self) -> list[int]:
        return [1]

    def ensure_step_indexed(self, step: int) -> None:
        pass

    def list_prompts(self, step: int) -> list[tuple[str, int, str]]:
        return [("k", 4, "What?")]

    def list_trajectory_ids(self, step: int, prompt_key: str) -> list[int]:
        return [1, 2, 3, 4]

    def load_trajectory(self, trajectory_id: int) -> Trajectory:
        return Trajectory([], {"id": trajectory_id})


def facts(tracer: RLTracer) -> dict[str, Any]:
    return {one.preview: (one.count, one.scored, one.successes, one.pass_rate) for one in tracer.step(1).prompts()}


def step_facts(tracer: RLTracer, number: int = 1) -> tuple[int | None, int | None, float | None]:
    step = tracer.step(number)
    return step.scored, step.successes, step.pass_rate


@pytest.fixture
def tracer(tmp_path: Path) -> RLTracer:
    asked = [rollout(f"a{n}", "easy?", passed=n > 0) for n in range(4)] + [rollout("b", "unscored?", passed=None)]
    return RLTracer(write_steps(tmp_path / "run", {1: [*asked, rollout("c", "hard?", passed=False)]}))


def test_a_prompt_group_knows_its_pass_rate_without_reading_a_record(
    tracer: RLTracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(tracer.adapter), "load_trajectory", None)
    assert facts(tracer) == {"easy?": (4, 4, 3, 0.75), "unscored?": (1, 0, 0, None), "hard?": (1, 1, 0, 0.0)}
    assert ": 4 trajectories, pass rate 0.750, 'easy?'>" in repr(tracer.step(1).prompts()[0])


def test_a_step_knows_its_pass_rate_once_it_has_been_read(tracer: RLTracer) -> None:
    assert step_facts(tracer) == (None, None, None)
    tracer.step(1).prompts()
    assert step_facts(tracer) == (5, 3, 0.6)


def test_a_step_has_the_pass_rate_of_train_where_it_has_any_of_it(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a"), rollout("b", passed=False)], 3: [rollout("c", passed=None)]})
    write_steps(tmp_path / "run", {1: [rollout("d")], 2: [rollout("e")]}, "eval")
    index(database, tmp_path / "run")
    write_steps(tmp_path / "run", {4: [rollout("f")]})
    with RLTracer(database) as tracer:
        assert [step_facts(tracer, number) for number in (1, 2, 3)] == [(2, 1, 0.5), (1, 1, 1.0), (0, 0, None)]


def test_a_prompt_group_knows_its_split_environment_and_mean_reward(tmp_path: Path) -> None:
    math, code = {"env_name": "math"}, {"env_name": "code"}
    asked = [rollout("a", info=math), rollout("b", passed=False, info=math), rollout("f", "Hm?", info=code)]
    write_steps(tmp_path / "run", {1: [*asked, rollout("c", passed=None, info=math)]})
    write_steps(tmp_path / "run", {1: [rollout("d", info=code), rollout("e", info=math)]}, "eval")
    with RLTracer(tmp_path / "run") as tracer:
        found = [(one.preview, one.split, one.env, one.count, one.reward_mean) for one in tracer.step(1).prompts()]
        assert sorted(found, key=str) == [
            ("6 * 7?", "eval", None, 2, 1.0), ("6 * 7?", "train", "math", 3, 0.5), ("Hm?", "train", "code", 1, 1.0)
        ]  # fmt: skip
        assert tracer.step(1).reward_mean == pytest.approx(2 / 3)


def test_an_index_from_before_the_mean_reward_of_a_prompt_gets_it_without_reading_a_file(tmp_path: Path) -> None:
    asked = [rollout("a"), rollout("b", passed=False), rollout("c", passed=None)]
    database = indexed(tmp_path, {1: asked, 2: [rollout("d"), rollout("e", "Other?", passed=None)]})
    kept = "select preview, reward_mean from prompt_pass_rates order by preview"
    groups = "select id, rewarded from prompt_groups order by id"
    before = rows(database, groups)
    assert rows(database, kept) == [("6 * 7?", pytest.approx(2 / 3)), ("Other?", None)]
    made_before("m003_rewarded", database)
    assert inspected(database, "--step", "1").returncode == 0
    with RLTracer(database) as tracer:
        assert [one.reward_mean for one in tracer.step(1).prompts()] == [0.5]
    assert index(database, tmp_path / "run").read_shards == 0
    assert rows(database, kept) == [("6 * 7?", pytest.approx(2 / 3)), ("Other?", None)]
    assert rows(database, groups) == before == [(1, 2), (2, 1), (3, 0)]


def test_a_trajectory_knows_whether_it_is_a_success(tracer: RLTracer) -> None:
    found = {
        one.metadata["uid"]: one.metadata["success"]
        for group in tracer.step(1).prompts()
        for one in (reference.load() for reference in group.trajectories())
    }
    assert found == {"a0": False, "a1": True, "a2": True, "a3": True, "b": None, "c": False}


def test_an_adapter_of_ones_own_need_not_know_it() -> None:
    assert facts(RLTracer(Foreign())) == {"What?": (4, None, None, None)}
    assert step_facts(RLTracer(Foreign())) == (None, None, None)


def test_an_adapter_of_ones_own_may_know_it() -> None:
    class Scoring(Foreign):
        def prompt_scores(self, step: int) -> dict[str, tuple[int, int]]:
            return {"k": (4, 1)}

        def step_scores(self, step: int) -> tuple[int, int]:
            return 8, 2

    [group] = RLTracer(Scoring()).step(1).prompts()
    assert (group.split, group.env, group.reward_mean, RLTracer(Scoring()).step(1).reward_mean) == (None,) * 4
    assert step_facts(RLTracer(Scoring())) == (8, 2, 0.25)
    assert facts(RLTracer(Scoring())) == {"What?": (4, 4, 1, 0.25)}


def test_a_step_that_is_not_read_yet_says_so(tmp_path: Path) -> None:
    steps = {number: [rollout(f"a{number}", "unscored?", passed=None)] for number in (1, 2)}
    tracer = RLTracer(write_steps(tmp_path / "run", steps))
    unread = f"of {str(tmp_path / 'run')!r}, not read yet>"
    assert list(map(repr, tracer.steps())) == [f"<RolloutStep: step {number} {unread}" for number in (1, 2)]
    tracer.step(1).prompts()
    assert [", not read yet" in repr(step) for step in tracer.steps()] == [False, True]


@pytest.mark.parametrize("is_scoring", [False, True])
def test_a_step_of_an_adapter_that_does_not_know_what_is_read_shows_itself(is_scoring: bool) -> None:
    class Failing(Foreign):
        def step_scores(self, step: int) -> None:
            raise OSError("the disk is gone")

    assert repr(RLTracer((Failing if is_scoring else Foreign)()).step(1)) == "<RolloutStep: step 1 of 'elsewhere'>"
