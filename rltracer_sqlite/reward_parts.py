"""What the total reward of a run is made of: a rule on the total passes a wrong answer whose format makes up for it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from .amounts import exactly, listed, shortened
from .index.columns import quoted
from .index.derived import reward_columns
from .passrates import SuccessRule
from .sources.base import SourceError

TOTAL = "reward"  # the path of a rule that is on all of them together
NAME_COLUMNS, NAMES_COLUMNS = 30, 50  # of one name in a sentence, and of all of them
LOOKED_INTO = 1_000  # trajectories of a run, for rewards that the index does not add up


class RewardParts(NamedTuple):
    """The two or more rewards of which a run's total is made, by their paths, such as rewards.accuracy.score.

    `is_sum` says that the total is their plain sum; else it is recorded beside them, or they may have weights.
    `is_whole` is False where each environment has some of them and none has all.
    """

    paths: tuple[str, ...]
    is_sum: bool
    is_whole: bool

    @property
    def names(self) -> tuple[str, ...]:
        """What the rewards are called."""
        return tuple(path.removeprefix("rewards.").removesuffix(".score") for path in self.paths)

    @property
    def named(self) -> str:
        """The names in a few words, as they are recorded: 'accuracy, format and length'."""
        names = [shortened(name, NAME_COLUMNS) for name in self.names]
        told = listed(names, NAMES_COLUMNS)
        return f"{', '.join(names[:-1])} and {names[-1]}" if told == ", ".join(names) else told

    @property
    def words(self) -> str:
        """What the total is, in a few words: 'the sum of accuracy and format'."""
        return f"{'the sum' if self.is_sum else 'made'} of {'' if self.is_whole else 'several of '}{self.named}"


def as_written(path: object, threshold: object) -> str:
    """Return the rule of a row of `runs` as `--success` takes it."""
    # An index that nobody vouched for may hold anything.
    return f"{path} >= {exactly(threshold) if isinstance(threshold, (int, float)) else threshold}"


def rule_in_words(rule: object, parts: RewardParts | None, in_brackets: bool = False) -> str:
    """Return a success rule as it is written, and in brackets what the reward is made of where the rule is on several.

    Within brackets it follows a comma.
    """
    if parts is None:
        return str(rule)
    return f"{rule}, {parts.words}" if in_brackets else f"{rule} ({parts.words})"


def one_of(parts: RewardParts, rule: SuccessRule) -> str:
    """Return the rule that is on the first of them alone, as it is written."""
    return str(SuccessRule(parts.paths[0], rule.threshold))


def reward_parts(
    connection: sqlite3.Connection, run_id: int, path: str, envs: Collection[str | None] | None = None
) -> RewardParts | None:
    """Return what the value at the path of a rule is made of in a run; None unless it is the total of several rewards.

    Rewards of different environments are no parts of one total; `envs` asks for what it is in these alone. What the
    index adds up per step answers, which an early one does not; of more rewards than it adds up the rare ones are
    looked for in some trajectories of the run.
    """
    if path != TOTAL or not connection.execute("pragma table_info(step_values)").fetchone():
        return None
    known = connection.execute(
        """
        select path, column_name from fields
        where path like 'rewards.%.score' and kind = 'number' and column_name is not null order by id
        """
    ).fetchall()
    if len(known) < 2:
        return None
    recorded = _recorded(connection, run_id, dict(known).values())
    totals = [found for env, found in recorded.items() if len(found) > 1 and (envs is None or env in envs)]
    every = set().union(*totals)
    paths = tuple(found for found, column in known if column in every)
    return RewardParts(paths, _is_sum(connection, run_id), every in totals) if paths else None


def _recorded(connection: sqlite3.Connection, run_id: int, columns: Collection[str]) -> dict[str | None, set[str]]:
    """Return which of some rewards each environment of a run has."""
    rows = connection.execute(
        """
        select distinct env, name from step_values
        where run_id = ? and name in (select value from json_each(?)) and trajectories > 0
        """,
        (run_id, json.dumps(list(columns))),
    ).fetchall()
    added_up = reward_columns(connection)
    rows += _looked_into(connection, run_id, [column for column in columns if column not in added_up])
    found: dict[str | None, set[str]] = {}
    for env, column in rows:
        found.setdefault(env, set()).add(column)
    return found


def _looked_into(connection: sqlite3.Connection, run_id: int, columns: list[str]) -> list[tuple[str | None, str]]:
    """Return the environments and rewards of some trajectories of a run."""
    there = {name for (name,) in connection.execute("select name from pragma_table_xinfo('trajectories')")}
    columns = [column for column in columns if column in there]
    if not columns:
        return []
    counts = ", ".join(f"count({quoted(column)})" for column in columns)
    rows = connection.execute(
        f"select env, {counts} from (select * from trajectories where run_id = ? limit {LOOKED_INTO}) t group by env",
        (run_id,),
    )
    return [(env, column) for env, *found in rows for column, count in zip(columns, found, strict=True) if count]


def _is_sum(connection: sqlite3.Connection, run_id: int) -> bool:
    """Say whether the mapping of a run adds the rewards up; other systems record a total, or weights."""
    from .sources.table.mapping_file import parse_mapping

    row = connection.execute("select mapping from runs where id = ?", (run_id,)).fetchone()
    mapping = row and row[0]  # the run may just have been removed
    try:
        return mapping is not None and parse_mapping(mapping, "the mapping in the index").adds_rewards
    except SourceError:
        return False
