"""The filters in the address of a group's or a trajectory's page: some are of groups, some of trajectories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .filter_names import refuse_unknown_filters
from .group_rows import SORTED_BY, USUAL_ORDER
from .selection import Pair, Selection, at, in_words, read_selection

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

# What the addresses of these pages can ask for besides filters and an order.
OWN = ("start", "words", "view", "lens", "branch", "full", "message", "find", "pretty")
USUAL: dict[str, Pair | None] = {
    "all": None,
    "passed": ("success", "1"),
    "failed": ("success", "0"),
    "unscored": ("success__isnull", "1"),
    "truncated": ("truncated", "1"),
    "with an error": ("error_type__notnull", "1"),
}


async def refuse_unknown(datasette: Datasette, database: str, request: Request) -> tuple[list[str], list[str]]:
    """Return the columns of groups and of trajectories. Raises BadRequest for a name in the address that is neither."""
    attached = datasette.databases[database]
    group_columns, columns = await asyncio.gather(
        attached.table_columns("prompt_groups"), attached.table_columns("trajectories")
    )
    known = dict.fromkeys([*group_columns, *columns])
    refuse_unknown_filters(request, "prompt_groups or trajectories", known, OWN)
    return group_columns, columns


async def selections(
    datasette: Datasette, database: str, request: Request, group: Mapping[str, Any] | None
) -> tuple[Selection, Selection]:
    """Return the selection of groups and that of trajectories in the address of a group's or a trajectory's page.

    A filter belongs to the groups where they have such a column. Where the address has no filter of groups, the
    neighbours of a group are those of its step. Raises BadRequest for a filter by what neither has.
    """
    group_columns, columns = await refuse_unknown(datasette, database, request)
    groups = read_selection(request, "prompt_groups", group_columns)
    rows = read_selection(request, "trajectories", columns, others=group_columns)
    if not groups.chosen and group is not None:
        usual: list[Pair] = [("run_id", str(group["run_id"])), at("step", group["step"])]
        groups = replace(groups, fixed=usual)
    return groups, replace(rows, values=SORTED_BY, usual=USUAL_ORDER)


def scope_words(groups: Selection, group: Mapping[str, Any]) -> str:
    """Return in words among which groups this one has its neighbours."""
    run, step = ("run_id", str(group["run_id"])), at("step", group["step"])
    within = "this index" if run not in groups.filters else "this run" if step not in groups.filters else "this step"
    others = [in_words(pair) for pair in groups.filters if pair not in (run, step)]
    where = f" where {' and '.join(others)}" if others else ""
    return f"{within}{where}{f', {order_words(groups)}' if groups.order else ''}"


def order_words(selection: Selection) -> str:
    """Return in words in which order the rows of a selection come."""
    column, descending = selection.shown_order or ("id", False)
    if column == "reward":
        return "best reward first" if descending else "worst reward first"
    return f"by {column}{' from the highest' if descending else ''}"


def usual_choices(rows: Selection, here: Callable[[Selection], str]) -> list[tuple[str, str, bool]]:
    """Return (words, address, whether chosen) of the usual filters of a group's trajectories."""
    found = []
    for words, pair in USUAL.items():
        chosen = [pair] if pair else []
        found.append((words, here(replace(rows, chosen=chosen)), list(rows.chosen) == chosen))
    return found
