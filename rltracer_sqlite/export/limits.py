"""Quotas across runs and windows: a prompt's global quota, unique prompts, and a fair target."""

from __future__ import annotations

import sqlite3

from ..amounts import plural
from .preferences import ExportError, ExportMode, ExportPreferences
from .scratch import Scratch

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

    Raises ExportError for a target that cannot be met.
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
        stages.append(("per prompt over all windows", scratch.count("placed")))
    if preferences.unique_prompts:
        _keep_turns(connection, 1)
        stages.append(("unique prompts", scratch.count("placed")))
    if preferences.target_count is not None:
        _meet_target(scratch, preferences)
        stages.append(("target", scratch.count("placed")))
    return stages


def asked(preferences: ExportPreferences) -> str:
    """Return how many rows or pairs a target asks for, as the beginning of a sentence."""
    what = "pair" if preferences.mode is ExportMode.PREFERENCE else "row"
    return f"{plural(preferences.target_count or 0, what)} asked for"


def _keep_turns(connection: sqlite3.Connection, most: int) -> None:
    """Keep the first `most` picks of each prompt; a prompt's second turn comes behind the first turns of a slot."""
    connection.execute("drop table if exists temp.kept")
    connection.execute(
        f"create temp table kept as select pick from ({TURNS}) where turn <= ? order by slot, turn, position", (most,)
    )
    connection.execute("delete from placed")
    connection.execute("insert into placed (pick) select pick from temp.kept order by rowid")
    connection.execute("drop table temp.kept")


def _meet_target(scratch: Scratch, preferences: ExportPreferences) -> None:
    target, available = preferences.target_count or 0, scratch.count("placed")
    if target > available:
        groups = scratch.connection.execute("select count(distinct unit) from picks").fetchone()[0]
        raise ExportError(
            f"{asked(preferences)}, {available:,} available, of {plural(groups, 'prompt')}. "
            "Ask for fewer, raise the quota per prompt, or loosen a filter."
        )
    scratch.connection.execute("delete from placed where position > ?", (target,))
