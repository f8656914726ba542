"""What an index keeps of the numbers of steps, beside what its trajectories give when they are asked."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from tests.indexing import rows

KEPT = """
    select step, split, trajectories, prompt_groups, scored, successes, truncated, errors, reward_mean, tokens_mean,
        turns_mean, reward_std
    from steps where indexed_at is not null order by step, split
"""
PLAIN = """
    select step, split, count(*), count(distinct prompt_group_id), count(success), ifnull(sum(success), 0),
        sum(truncated), sum(ok = 0 or error_type is not null), avg(reward),
        avg(completion_tokens), avg(turns), avg(reward * reward)
    from trajectories group by run_id, step, split order by step, split
"""
VALUES = "select step, split, env, name, trajectories, total from step_values where name = '{}' order by 1, 2, 3"
PLAIN_VALUES = """
    select step, split, env, '{0}', count({0}), sum({0}) from trajectories where {0} is not null
    group by run_id, step, split, env order by 1, 2, 3
"""


def are_counted(database: Path) -> int:
    """Fail where a number is not that of what is there, or a step counts as unread; return how many steps there are."""
    kept, plain = rows(database, KEPT), [_with_deviation(row) for row in rows(database, PLAIN)]
    assert len(kept) == len(plain)
    for row, wanted in zip(kept, plain, strict=True):
        assert row[:8] == wanted[:8]
        assert [row[8:]] == [pytest.approx(wanted[8:], abs=1e-6)]
    for name in ("reward", "turns"):
        for row, wanted in zip(
            rows(database, VALUES.format(name)), rows(database, PLAIN_VALUES.format(name)), strict=True
        ):
            assert (row[:5], row[5]) == (wanted[:5], pytest.approx(wanted[5]))
    return len(kept)


def _with_deviation(row: tuple[Any, ...]) -> tuple[Any, ...]:
    *numbers, squares = row
    return *numbers, None if squares is None else sqrt(max(squares - row[8] ** 2, 0))
