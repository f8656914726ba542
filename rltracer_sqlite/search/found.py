"""The rows of trajectories that a search finds, as SQL: one question for the page and for the command."""

from __future__ import annotations

from .tables import TEXT_TABLE

FOUND = f"id in (select rowid from {TEXT_TABLE} where {TEXT_TABLE} match :match)"
ROWS = """
select
    id, uid, run_id, (select name from runs r where r.id = run_id) as run, prompt_group_id, step, split, env, reward,
    success, turns, stop_condition, byte_length, preview
from trajectories where {where} order by {order} limit {size} offset {start}
"""
SUMMARY = """
select
    count(*) as trajectories, count(success) as scored, ifnull(sum(success), 0) as successes,
    count(distinct prompt_group_id) as prompt_groups, min(step) as first_step, max(step) as last_step
from trajectories where {where}
"""
NEWEST_FIRST = "id desc"


def found_rows(where: str, size: int, start: int = 0, order: str = NEWEST_FIRST) -> str:
    """Return the query for the trajectories that `:match` finds among those that fulfil a condition, in an order."""
    return ROWS.format(where=f"{FOUND} and {where}", order=order, size=size, start=start)


def found_summary(where: str) -> str:
    """Return the query for how many trajectories `:match` finds among those that fulfil a condition, and of what."""
    return SUMMARY.format(where=f"{FOUND} and {where}")
