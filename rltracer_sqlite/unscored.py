"""What a success rule does not score: why, the recorded numbers that look like its own, and what sets another rule."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePath
from shlex import quote
from typing import TYPE_CHECKING

from .amounts import LONGEST_NAME, listed, plural, shortened
from .index.columns import quoted, resolve_path
from .passrates import SuccessRule

if TYPE_CHECKING:
    from .index.ranked import Unscored

MOST_SIMILAR = 3
REWARD_RULE = "reward >= 1"
NEARLY = 0.8  # share of two paths that is the same where one is a slip of the other: metrics.foo is not metrics.bar


def scores_nothing(connection: sqlite3.Connection, run_ids: Sequence[int], rule: SuccessRule) -> str | None:
    """Return sentences on a rule that scores no trajectory of some runs, and None where it scores one of them."""
    columns, column = _numbers(connection), resolve_path(connection, rule.path)
    if column and column in columns.values() and _holds(connection, run_ids, column):
        return None
    runs = f"({', '.join('?' * len(run_ids))})"
    sql = f"select total(trajectories) from prompt_groups where run_id in {runs}"
    count = int(connection.execute(sql, run_ids).fetchone()[0])
    names = [name for (name,) in connection.execute(f"select name from runs where id in {runs} order by id", run_ids)]
    is_text = connection.execute("select 1 from fields where path = ? and kind <> 'number'", (rule.path,)).fetchone()
    why = f"{rule.path} is recorded as text" if is_text else f"none has a number at {rule.path}"
    candidates = (path for path in _similar(rule.path, columns) if _holds(connection, run_ids, columns[path]))
    similar = ", ".join(islice(candidates, MOST_SIMILAR))
    there = f"Numbers that they have: {similar}." if similar else "They have no number that could be one."
    return f"The rule {rule} scores 0 of {plural(count, 'trajectory')} of {listed(names)}: {why}. {there}"


def unscored_environments(connection: sqlite3.Connection, run_id: int) -> list[str | None]:
    """Return the environments of which a run's rule scores no trajectory: another rule may score these."""
    rows = connection.execute(
        "select env from prompt_groups where run_id = ? group by env having sum(scored) = 0 order by env", (run_id,)
    )
    return [env for (env,) in rows]


def of_environments(environments: Iterable[str | None]) -> str:
    """Return ' of a, b' for these environments as far as they have names, else ''."""
    named = listed(shortened(str(env), LONGEST_NAME) for env in environments if env is not None)
    return f" of {named}" if named else ""


def lack(found: Unscored, all_of_them: str, path: str) -> str:
    """Return what prompts without a score lack: what the rule is on, or any reward."""
    without = found.prompts - found.rewarded
    lacks = ((found.rewarded, f"rewards, but no {path}"), (without, "no reward"))
    told = [
        f"{all_of_them if count == found.prompts else f'{count:,}'} {'has' if count == 1 else 'have'} {what}"
        for count, what in lacks
        if count
    ]
    return ", and ".join(told)


def another_rule(connection: sqlite3.Connection, run_id: int, index: PurePath | str, has_rewards: bool) -> str:
    """Return the command that sets another rule of a run: without its number it would change that of every run.

    Where a run has this number for a name, it is named instead. `index` is what the command calls the index. The rule
    is on the reward where what has no score has one, and else to be filled in.
    """
    sql = "select count(*), max(case when id = :run then name end), max(name = :number) from runs"
    runs, name, is_a_name = connection.execute(sql, {"run": run_id, "number": str(run_id)}).fetchone()
    which = f" {quote(name) if is_a_name else run_id}" if runs > 1 else ""
    rule = REWARD_RULE if has_rewards else "PATH >= NUMBER"
    return f"rltracer success {quote(str(index))}{which} --rule {quote(rule)}"


def meant_instead(connection: sqlite3.Connection, run_ids: Sequence[int], path: str) -> str | None:
    """Return the recorded number that a path is a slip of, and None where it is like none."""
    columns = _numbers(connection)
    return next((known for known in _alike(path, columns, NEARLY) if _holds(connection, run_ids, columns[known])), None)


def _numbers(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the column of each recorded number by its path."""
    rows = connection.execute(
        "select path, column_name from fields where kind = 'number' and column_name is not null order by path"
    )
    return dict(rows.fetchall())


def _holds(connection: sqlite3.Connection, run_ids: Sequence[int], column: str) -> bool:
    runs = ", ".join("?" * len(run_ids))
    sql = f"select 1 from trajectories t where run_id in ({runs}) and {quoted(column)} is not null limit 1"
    return connection.execute(sql, run_ids).fetchone() is not None


def _similar(path: str, columns: dict[str, str]) -> Iterator[str]:
    """Yield recorded numbers: those that are spelt alike, then those beside the path, then rewards and metrics."""
    folder = path.partition(".")[0]
    beside = [known for known in columns if known.startswith(f"{folder}.")]
    judged = [known for known in columns if known.startswith(("reward", "metrics."))]
    yield from dict.fromkeys([*_alike(path, columns), *beside, *judged])


def _alike(path: str, columns: dict[str, str], least: float = 0.6) -> list[str]:
    return difflib.get_close_matches(path, list(columns), n=MOST_SIMILAR, cutoff=least)
