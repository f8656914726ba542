"""What indexing tells of a run's success rule: what it scores, what it does not, and of which rewards it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from shlex import quote

from ..amounts import plural
from ..passrates import SuccessRule
from ..reward_parts import one_of, reward_parts
from ..unscored import of_environments, unscored_environments
from .visible import in_line


def scored_lines(
    connection: sqlite3.Connection, run_id: int, rule: SuccessRule, count: Mapping[str, int], is_chosen: bool
) -> list[str]:
    """Return what a run's rule scores; `count` has its `trajectories` and those that are `scored`.

    `is_chosen` says that a person has chosen the rule.
    """
    lines = [f"  success: {rule}"]
    lines += _part_lines(connection, run_id, rule, is_chosen)
    unscored = count["trajectories"] - count["scored"]
    lines += _unscored_lines(connection, run_id, rule.path, unscored, bool(count["scored"]))
    if unscored > 0 and (failed := _failed_episodes(connection, run_id)):
        rows = "is a row without turns" if failed == 1 else "are rows without turns"
        lines.append(f"  no trace: {plural(failed, 'episode')} failed before any agent ran, and {rows}")
    return lines


def _part_lines(connection: sqlite3.Connection, run_id: int, rule: SuccessRule, is_chosen: bool) -> list[str]:
    """Return a line where the reward is made of several: a format alone may make up for a wrong answer.

    While nobody has chosen the rule, another one is told as well.
    """
    parts = reward_parts(connection, run_id, rule.path)
    if parts is None:
        return []
    of_all = "their sum" if parts.is_sum else "what they make together"
    line = f"  rewards: {in_line(parts.named)}; the rule is on {of_all}, not on each"
    return [line] if is_chosen else [line, f"  by one of them alone: --success {in_line(quote(one_of(parts, rule)))}"]


def _unscored_lines(
    connection: sqlite3.Connection, run_id: int, path: str, unscored: int, is_some_scored: bool
) -> list[str]:
    """Return a line on what the rule does not score: on whole environments, since another rule may score these."""
    environments = unscored_environments(connection, run_id)
    if not environments:
        return [f"  unscored: {plural(unscored, 'trajectory')} without {path}"] if unscored > 0 else []
    where = of_environments(environments) if is_some_scored else ""
    return [f"  unscored: no trajectory{where} records {path}; --success sets another rule"]


def _failed_episodes(connection: sqlite3.Connection, run_id: int) -> int:
    """Return how many rows of a run are episodes without traces: such a row is named as its episode."""
    sql = """
        select count(*) from trajectories
        where run_id = ? and success is null and ok = 0 and turns = 0 and uid = episode_id
    """
    return int(connection.execute(sql, (run_id,)).fetchone()[0])
