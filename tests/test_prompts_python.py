"""Prompts over all steps in Python: the hardest, the best and the worst, as the terminal and SQL have them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rltracer_sqlite import RLTracer, TrajectoryRef
from rltracer_sqlite.scores import MOST_RANKED
from tests.commands import rltracer
from tests.export_runs import rollout, write_steps
from tests.index_factory import make_index
from tests.indexing import rows
from tests.test_prompt_scores import Foreign

GROUPS = {  # (prompt, step, split, env): rewards
    ("moving", 1, "train", "math"): [0.0, 0.5, None, 0.0],
    ("moving", 2, "train", "math"): [1.0, 1.0],
    ("moving", 2, "train", "code"): [2.0],
    ("moving", 2, "eval", "math"): [0.5, 1.0],
    ("level", 1, "train", "math"): [0.5, 0.5],
    ("level", None, "train", "math"): [0.5],
    ("alone", 1, "train", "math"): [1.0, None],
    ("unrewarded", 2, "train", "math"): [None],
    ("no split", 2, None, None): [1.0, 0.0],
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = [
        {"prompt": prompt, "step": step, "split": split, "env": env, "reward": reward}
        for (prompt, step, split, env), rewards in GROUPS.items()
        for reward in rewards
    ]
    return make_index(tmp_path_factory.mktemp("made") / "x.sqlite", made)


@pytest.fixture
def tracer(database: Path, monkeypatch: pytest.MonkeyPatch) -> RLTracer:
    found = RLTracer(database)
    monkeypatch.setattr(type(found.adapter), "load_trajectory", None)  # no record is read
    return found


def ids(*found: TrajectoryRef | None) -> list[int | None]:
    return [one and one.id for one in found]


@pytest.mark.parametrize("chosen", [{}, {"split": "train"}, {"env": "math", "split": "eval"}], ids=str)
@pytest.mark.parametrize("which", ["hardest", "easiest"])
@pytest.mark.parametrize("limit", [2, None])
def test_the_hardest_are_those_of_the_terminal(
    database: Path, tracer: RLTracer, which: str, limit: int | None, chosen: dict[str, str]
) -> None:
    options = [word for name, text in chosen.items() for word in (f"--{name}", text)]
    done = rltracer("inspect", database, f"--{which}", limit or 99, *options, "--json")
    told = list(map(json.loads, done.stdout.splitlines()))
    found = getattr(tracer, f"{which}_prompts")(limit, **chosen)
    names = {"number": "prompt_id", "key": "prompt", "count": "trajectories", "split": "split", "env": "env"}
    names |= {name: name for name in ("preview", "steps", "scored", "successes", "pass_rate", "rewarded")}
    assert [{column: getattr(one, name) for name, column in names.items()} for one in found] == [
        {column: row[column] for column in names.values()} for row in told
    ]
    assert [one.reward_mean for one in found] == [row["reward_mean"] for row in told]
    assert [ids(one.best, one.worst) for one in found] == [[row["best"], row["worst"]] for row in told]
    assert len(found) == min(limit or 99, 1 if "env" in chosen else 4 if chosen else 6)


# The ids of the best and the worst of each prompt in its split and environment, by hand.
ENDS = {
    ("moving", "train", "math"): (5, 4),  # the first of the highest, and the last of the lowest
    ("moving", "train", "code"): (None, None),
    ("moving", "eval", "math"): (9, 8),
    ("level", "train", "math"): (None, None),
    ("alone", "train", "math"): (None, None),
    ("no split", None, None): (16, 17),
}


def test_a_prompt_has_its_best_and_its_worst_over_all_steps(tracer: RLTracer) -> None:
    found = {(one.preview, one.split, one.env): ids(one.best, one.worst) for one in tracer.hardest_prompts(None)}
    assert found == {kind: list(ends) for kind, ends in ENDS.items()}
    assert set(found) < {(prompt, split, env) for prompt, _, split, env in GROUPS}  # the unrewarded one is not scored


def test_a_prompt_leads_to_its_groups(tracer: RLTracer) -> None:
    found = {(one.preview, one.split, one.env): one for one in tracer.hardest_prompts(None)}
    steps = {kind: [group.step for group in prompt.groups()] for kind, prompt in found.items()}
    assert steps["moving", "train", "math"] == [1, 2]
    assert steps["moving", "train", "code"] == [2]
    assert steps["level", "train", "math"] == [1, None]
    for prompt in found.values():
        assert len(prompt) == prompt.count > 0
        for group in prompt.groups():
            assert [one for one in tracer.step(group.step).prompts() if one.key == group.key] == [group]


def test_a_group_has_its_best_and_its_worst(database: Path, tracer: RLTracer) -> None:
    groups = {(one.preview, one.step, one.split): one for step in tracer.steps() for one in step.prompts()}
    found = {kind: ids(group.best, group.worst) for kind, group in groups.items()}
    assert found == {
        ("moving", 1, "train"): [2, 4], ("level", 1, "train"): [None, None], ("alone", 1, "train"): [None, None],
        ("moving", 2, "train"): [7, 6], ("moving", 2, "eval"): [9, 8], ("unrewarded", 2, "train"): [None, None],
        ("no split", 2, None): [16, 17], ("level", None, "train"): [None, None],
    }  # fmt: skip
    told = map(json.loads, rltracer("inspect", database, "--prompt", 1, "--json").stdout.splitlines())
    assert [found["moving", row["step"], row["split"]] for row in told] == [[2, 4], [9, 8], [7, 6]]


def test_a_step_has_its_trajectories_prompt_by_prompt(database: Path, tracer: RLTracer) -> None:
    step = tracer.step(2)
    assert ids(*step.trajectories()) == ids(*(one for group in step.prompts() for one in group.trajectories()))
    assert sorted(one.id for one in step.trajectories()) == [
        number for (number,) in rows(database, "select id from trajectories where step = 2 order by id")
    ]


def test_there_are_as_many_as_in_the_other_lists(tmp_path: Path) -> None:
    many = [{"prompt": f"p{number}", "reward": float(number % 2)} for number in range(2 * MOST_RANKED)]
    with RLTracer(make_index(tmp_path / "x.sqlite", many)) as tracer:
        assert len(tracer.hardest_prompts()) == MOST_RANKED == len(tracer.easiest_prompts())
        assert len(tracer.hardest_prompts(None)) == 2 * MOST_RANKED
        assert tracer.hardest_prompts(0) == []


def test_a_run_is_read_first_and_its_prompts_are_shown_as_asked(tmp_path: Path) -> None:
    steps = {1: [rollout("a", "Hard?", passed=False)], 2: [rollout("b", "Hard?"), rollout("c", "Easy?")]}
    with RLTracer(write_steps(tmp_path / "run", steps), prompt_parser=lambda messages: messages[-1]["role"]) as tracer:
        [hard, easy] = tracer.hardest_prompts()
        assert (hard.preview, hard.steps, hard.pass_rate, easy.pass_rate) == ("user", 2, 0.5, 1.0)
        assert [one.load().metadata["uid"] for one in (hard.best, hard.worst) if one] == ["b", "a"]
        assert repr(hard) == f"<Prompt {hard.number} of 'train': 2 trajectories in 2 steps, pass rate 0.500, 'user'>"


def test_a_split_or_an_environment_that_is_not_there_is_refused(tracer: RLTracer) -> None:
    for chosen in ({"split": "test"}, {"env": "chess"}, {"split": "eval", "env": "code"}):
        with pytest.raises(ValueError, match="The run demo has no trajectory"):
            tracer.hardest_prompts(**chosen)


def test_an_adapter_of_ones_own_need_not_know_them() -> None:
    tracer = RLTracer(Foreign())
    [group] = tracer.step(1).prompts()
    assert (group.best, group.worst) == (None, None)
    assert ids(*tracer.step(1).trajectories()) == [1, 2, 3, 4]
    with pytest.raises(TypeError, match=r"has no method ranked_prompts, as IndexedAdapter has\.$"):
        tracer.hardest_prompts()
