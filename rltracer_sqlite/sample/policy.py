"""How the sampled policy learns: which prompt is sampled at which step, and how many of its rollouts pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from . import explained, pictures, questions, terminal
from .task import Attempt, Draft, Task

STEPS = range(1, 9)
EVAL_STEPS = (4, 8)

# The share of rollouts that pass at steps 1 to 8; None: the prompt is not sampled at that step.
TRAIN: Mapping[str, tuple[float | None, ...]] = {
    "honey-jars": (1, 1, 1, 1, None, 1, None, 1),
    "van-speed": (0, None, 0.17, None, 0.5, None, 0.83, 1),
    "zaunpfosten": (None, 0, None, 0.33, 0.67, None, 0.83, 0.83),
    "bicicleta": (0, None, 0.33, None, 0.67, 0.83, None, None),
    "digit-one": (None, 0, None, 0, None, 0, 0, None),
    "count-500": (0, None, 0.25, 0.5, 0.75, None, 1, 1),
    "disk-full": (None, 0.25, 0.5, None, 0.5, 1, 0.75, 0.75),
    "port-in-use": (0, 0, None, 0, None, 0, None, None),
    "blue-squares": (0, 0.25, None, 0.5, 0.75, None, 1, 0.75),
    "one-circle": (0.5, None, 0.75, 1, None, 1, 1, None),
    "three-bars": (None, 0.25, 0.75, None, 1, 0.75, None, 0.5),  # learnt, then forgotten
    "leap-years": (0, 0.25, 0.25, 0.5, 0.5, 0.75, 1, 0.75),
}
EVAL: Mapping[str, tuple[float, float]] = {
    "van-speed-held-out": (0.25, 1),
    "zaunpfosten-held-out": (0.25, 0.75),
    "count-500-held-out": (0.5, 1),
    "blue-squares-held-out": (0.5, 0.5),
}
TASKS: Mapping[str, Task] = {
    task.name: task
    for family in (questions, terminal, pictures, explained)
    for task in (*family.TRAIN, *getattr(family, "EVAL", ()))
}

LATE = (5, "count-500")  # this group is trained on one step later than it arrived


def _without_reward(draft: Draft, passed: bool, rng: Random) -> None:
    TASKS["disk-full"].attempt(draft, passed, rng)
    draft.rewards = {name: (None, weight) for name, (_, weight) in draft.rewards.items()}
    draft.metrics["correct_final_label"] = None


# One rollout of each of these groups goes another way: one that would fail, or would pass for `delegate_count`.
# None: its episode fails before an agent runs.
TWISTS: Mapping[tuple[int, str], Attempt | None] = {
    (2, "disk-full"): None,
    (3, "count-500"): terminal.lose_sandbox,
    (4, "digit-one"): questions.ramble,
    (5, "disk-full"): _without_reward,
    (6, "port-in-use"): terminal.compact,
    (7, "count-500"): terminal.delegate_count,
}


@dataclass(frozen=True)
class Group:
    """The rollouts of one task at one step: how each goes on (None: not at all), and whether it passes."""

    task: Task
    step: int
    split: str
    rollouts: list[tuple[Attempt | None, bool]]


def plan_groups(step: int, split: str) -> list[Group]:
    """Return the groups of a step."""
    shares = {name: row[step - 1] for name, row in TRAIN.items()}
    if split == "eval":
        shares = {name: row[EVAL_STEPS.index(step)] for name, row in EVAL.items()}
    return [_plan_group(TASKS[name], step, split, share) for name, share in shares.items() if share is not None]


def _plan_group(task: Task, step: int, split: str, share: float) -> Group:
    outcomes = [number < round(share * task.rollouts) for number in range(task.rollouts)]
    Random(f"outcomes {task.name} {step}").shuffle(outcomes)
    rollouts: list[tuple[Attempt | None, bool]] = [(task.attempt, passed) for passed in outcomes]
    if (step, task.name) in TWISTS:
        twist = TWISTS[step, task.name]
        passed = twist is terminal.delegate_count
        rollouts[outcomes.index(passed)] = (twist, passed)
    return Group(task, step, split, rollouts)
