"""What indexing tells of a run's success rule: what it scores, what it does not, and of which rewards it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from shlex import quote

from ..amounts import listed, plural
from ..index.columns import quoted
from ..passrates import SuccessRule
from .visible import in_line


def scored_lines(
    connection: sqlite3.Connection, run_id: int, rule: SuccessRule, count: Mapping[str, int], is_asked: bool
) -> list[str]:
    """Return what a run's rule scores; `count` has its `trajectories` and those that are `scored`.

    Of one that was asked for it is known which of several rewards it is of.
    """
    lines = [f"  success: {rule.path} >= {rule.threshold:g}"]
    if rule.path == "reward" and not is_asked:
        lines += _part_lines(connection, run_id, rule)
    unscored = count["trajectories"] - count["scored"]
    lines += _unscored_lines(connection, run_id, rule.path, unscored, bool(count["scored"]))
    if unscored > 0 and (failed := _failed_episodes(connection, run_id)):
        rows = "is a row without turns" if failed == 1 else "are rows without turns"
        lines.append(f"  no trace: {plural(failed, 'episode')} failed before any agent ran, and {rows}")
    return lines


def _part_lines(connection: sqlite3.Connection, run_id: int, rule: SuccessRule) -> list[str]:
    """Return a line where the reward is made of several: a format alone may make up for a wrong answer."""
    recorded = connection.execute(
        """
        select path, column_name from fields
        where path like 'rewards.%.score' and kind = 'number' and column_name is not null order by id
        """
    ).fetchall()
    parts = [path for path, column in recorded if _is_recorded(connection, run_id, column)]
    if len(parts) < 2:
        return []
    names = listed(in_line(path.removeprefix("rewards.").removesuffix(".score")) for path in parts)
    one = quote(str(SuccessRule(parts[0], rule.threshold)))
    return [
        f"  rewards: {names}; the rule is on their sum, not on each",
        f"  by one of them alone: --success {in_line(one)}",
    ]


def _is_recorded(connection: sqlite3.Connection, run_id: int, column: str) -> bool:
    sql = f"select 1 from trajectories t where run_id = ? and {quoted(column)} is not null limit 1"
    return connection.execute(sql, (run_id,)).fetchone() is not None


def _unscored_lines(
    connection: sqlite3.Connection, run_id: int, path: str, unscored: int, is_some_scored: bool
) -> list[str]:
    """Return a line on what the rule does not score: on whole environments, since another rule may score these."""
    rows = connection.execute(
        "select env from prompt_groups where run_id = ? group by env having sum(scored) = 0 order by env", (run_id,)
    )
    environments = [env for (env,) in rows]
    if not environments:
        return [f"  unscored: {plural(unscored, 'trajectory')} without {path}"] if unscored > 0 else []
    named = listed(str(env) for env in environments if env is not None)
    where = f" of {named}" if is_some_scored and named else ""
    return [f"  unscored: no trajectory{where} records {path}; --success sets another rule"]


def _failed_episodes(connection: sqlite3.Connection, run_id: int) -> int:
    """Return how many rows of a run are episodes without traces: such a row is named as its episode."""
    sql = """
        select count(*) from trajectories
        where run_id = ? and success is null and ok = 0 and turns = 0 and uid = episode_id
    """
    return int(connection.execute(sql, (run_id,)).fetchone()[0])
