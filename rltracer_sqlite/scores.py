"""What an index knows of the trajectories of a prompt group or of a step, without reading a record."""

from __future__ import annotations

from typing import NamedTuple

MOST_RANKED = 10  # prompts in a list of the hardest or of the easiest, unless more are asked for


class Scores(NamedTuple):
    """What an index knows of the trajectories of a prompt group, or of those that a step's numbers are of."""

    scored: int
    successes: int
    reward_mean: float | None = None
    split: str | None = None
    env: str | None = None
    rewarded: int | None = None  # how many have a reward: what the mean is over
