"""Quotas across runs and windows: a prompt's global quota, unique prompts, and a fair target."""

from __future__ import annotations

import sqlite3

from .preferences import ExportError, ExportMode, ExportPreferences
from .scratch import Scratch

# Whatever else decides, every prompt's first pick comes before any prompt's second: that is what makes a target fair.
FIRST_ORDER = """
insert into placed (pick, position)
select pick, row_number() over (order by slot, layer, draw, run, id) from picks
"""
TURNS = """
select l.pick, p.slot, l.position, row_number() over (partition by p.prompt order by l.position) as turn
from placed l join picks p on p.pick = l.pick
"""


def place_picks(scratch: Scratch, preferences: ExportPreferences) -> list[tuple[str, int]]:
    """Fill `placed` with the picks that are left, and return (stage, how many are left) of each stage there is.

    Raises ExportError for a target that cannot be met.
    """
    connection = scratch.connection
    connection.execute("delete from placed")
    if not preferences.is_limited:
        connection.execute("insert into placed (pick, position) select pick, pick from picks")
        return []
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


def _keep_turns(connection: sqlite3.Connection, most: int) -> None:
    """Keep the first `most` picks of each prompt; a prompt's second turn comes behind the first turns of a slot."""
    connection.execute("drop table if exists temp.kept")
    connection.execute(
        f"""
        create temp table kept as
        select pick, row_number() over (order by slot, turn, position) as position from ({TURNS}) where turn <= :most
        """,
        {"most": most},
    )
    connection.execute("delete from placed")
    connection.execute("insert into placed (pick, position) select pick, position from temp.kept")
    connection.execute("drop table temp.kept")


def _meet_target(scratch: Scratch, preferences: ExportPreferences) -> None:
    target, available = preferences.target_count or 0, scratch.count("placed")
    if target > available:
        what = "pairs" if preferences.mode is ExportMode.PREFERENCE else "rows"
        groups = scratch.connection.execute("select count(*) from (select distinct run, unit from picks)").fetchone()[0]
        raise ExportError(
            f"{target:,} {what} were asked for, and {available:,} are available, of {groups:,} prompt groups. "
            "Ask for fewer, raise the quota per prompt, or loosen a filter; --dry-run shows what each one drops."
        )
    scratch.connection.execute("delete from placed where position > ?", (target,))
