"""The trajectories of a prompt group as rows: rewards, advantage, length, and whether they were trained on."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from datasette.utils import escape_sqlite

from rltracer_sqlite.index.views import DERIVED_ADVANTAGE

from .drawings import length_bar, signed_bar
from .queries import Query
from .selection import Selection
from .trained import training_words

ROWS_ON_A_PAGE = 100
MOST_REWARDS = 12  # named rewards with a column of their own
NARROW_REWARDS = 6  # of them where a window is no wider than that of a laptop

USUAL_ORDER = ("reward", True)  # the best first
SORTED_BY = {"advantage": f"ifnull(advantage, {DERIVED_ADVANTAGE})"}  # as it is shown, derived ones among the recorded

ROWS = """
select
    id, uid, success, reward, {rewards}advantage, case when advantage is null then {derived} end as advantage_derived,
    completion_tokens, turns, tool_calls, branches, stop_condition, truncated, ok, error_type, effective, ship_step,
    agent, seconds, byte_length, gone, (select layout from shards where id = shard_id) as layout
from trajectories where prompt_group_id = :group and {where} order by {order} limit {size} offset {start}
"""


def rows_query(group: int, selection: Selection, rewards: Sequence[tuple[str, str]], start: int) -> Query:
    """Return the query for trajectories of a prompt group; `rewards` are (column, name) of named rewards."""
    where, parameters = selection.where()
    columns = "".join(f"{escape_sqlite(column)}, " for column, _ in rewards)
    text = ROWS.format(
        rewards=columns,
        derived=DERIVED_ADVANTAGE,
        where=where,
        order=selection.ordering(),
        size=ROWS_ON_A_PAGE,
        start=start,
    )
    return Query(text, {**parameters, "group": group})


def reward_columns(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return (column, name) of the named rewards of an index, the most frequent first."""
    found = connection.execute(
        """
        select column_name, path from fields
        where path like 'rewards.%' and path not like '%.weight' and kind = 'number' and column_name is not null
            and column_name in (select name from pragma_table_xinfo('trajectories'))
        order by trajectories desc, id limit 40
        """
    )
    return [(row[0], row[1].removeprefix("rewards.").removesuffix(".score")) for row in found]


def shown_rewards(rewards: Sequence[tuple[str, str]], rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the named rewards that any of these rows has."""
    return [(column, name) for column, name in rewards if any(row[column] is not None for row in rows)]


def described_rows(rows: Sequence[Mapping[str, Any]], group: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return rows with what a page shows of them: advantage and length as bars, endings and training in words."""
    advantages = [row["advantage"] if row["advantage"] is not None else row["advantage_derived"] for row in rows]
    largest = max((abs(value) for value in advantages if isinstance(value, (int, float))), default=0.0)
    longest = max((row["completion_tokens"] or 0 for row in rows), default=0)
    return [
        {
            **row,
            "advantage_bar": signed_bar(value, largest),
            "length": length_bar(row["completion_tokens"], longest),
            "ending": ending_words(row),
            "training": training_words(row, group),
        }
        for row, value in zip(rows, advantages, strict=True)
    ]


def ending_words(row: Mapping[str, Any]) -> str:
    """Return why a trajectory ended, in one line."""
    said = [
        str(row["stop_condition"]) if row["stop_condition"] else "",
        "truncated" if row["truncated"] else "",
        str(row["error_type"]) if row["error_type"] else "error" if row["ok"] == 0 else "",
    ]
    return " · ".join(words for words in dict.fromkeys(said) if words) or "not recorded"
