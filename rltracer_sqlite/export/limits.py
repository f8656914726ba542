"""Quotas across runs and windows: a prompt's global quota, unique prompts, and a fair target."""

from __future__ import annotations

import sqlite3

from .preferences import ExportPreferences
from .scratch import Scratch

OVER_WINDOWS, UNIQUE, TARGET = "per prompt over all windows", "unique prompts", "target"  # stages of the funnel

# The picks that are left; their position is their place in the order in which limits take them. Whatever else decides,
# every prompt's first pick comes before any prompt's second: that is what makes a target fair.
PLACED = "create table if not exists placed (position integer primary key, pick integer)"
ALL_PLACED = "create view if not exists placed as select pick, pick as position from picks"
FIRST_ORDER = "insert into placed (pick) select pick from picks order by slot, layer, draw, run, id"
TURNS = """
select l.pick, p.slot, l.position, row_number() over (partition by p.prompt order by l.position) as turn
from placed l join picks p on p.pick = l.pick
"""


def place_picks(scratch: Scratch, preferences: ExportPreferences) -> list[tuple[str, int]]:
    """Make `placed` hold the picks that are left, and return (stage, how many are left) of each stage there is.

    Of a target that cannot be met fewer are left.
    """
    connection = scratch.connection
    if not preferences.is_limited:
        connection.execute(ALL_PLACED)
        return []
    connection.execute(PLACED)
    connection.execute("delete from placed")
    connection.execute(FIRST_ORDER)
    stages = []
    if preferences.global_per_prompt is not None:
        _keep_turns(connection, preferences.global_per_prompt)
        stages.append((OVER_WINDOWS, scratch.count("placed")))
    if preferences.unique_prompts:
        _keep_turns(connection, 1)
        stages.append((UNIQUE, scratch.count("placed")))
    if preferences.target_count is not None:
        connection.execute("delete from placed where position > ?", (preferences.target_count,))
        stages.append((TARGET, scratch.count("placed")))
    return stages


def _keep_turns(connection: sqlite3.Connection, most: int) -> None:
    """Keep the first `most` picks of each prompt; a prompt's second turn comes behind the first turns of a slot."""
    connection.execute("drop table if exists temp.kept")
    connection.execute(
        f"create temp table kept as select pick from ({TURNS}) where turn <= ? order by slot, turn, position", (most,)
    )
    connection.execute("delete from placed")
    connection.execute("insert into placed (pick) select pick from temp.kept order by rowid")
    connection.execute("drop table temp.kept")
