"""A Datasette over an index made from rows, on whichever line is installed."""

from __future__ import annotations

import pytest
from datasette.app import Datasette

from ..index_factory import make_index


def rollouts(successes: int, scored: int, **columns):
    """Return the rows of one group with this many successes."""
    return [{"reward": float(number < successes), **columns} for number in range(scored)]


SMALL = [
    row
    for step in range(1, 7)
    for number, env in enumerate(("math", "code", "math", "wordle"))
    for row in rollouts((number * 3 + step) % 5, 4, step=step, env=env, prompt=f"prompt {number}")
] + rollouts(1, 2, step=3, split="eval", prompt="held out")


@pytest.fixture(scope="session")
def index_path(tmp_path_factory):
    rows = [{**row, "rewards.format.score": 0.5, "completion_tokens": 100 + 10 * row["step"]} for row in SMALL]
    return make_index(tmp_path_factory.mktemp("index") / "run.sqlite", rows)


@pytest.fixture
def datasette(index_path):
    return Datasette([str(index_path)], settings={"suggest_facets": False})
