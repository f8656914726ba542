"""The page of two trajectories side by side: where they part, and what each of them did then."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import NotFound, Request, Response

from rltracer_sqlite.comparison import DERIVED, prompts_in_words, rules_in_words
from rltracer_sqlite.index.queries import as_recorded, key_of_prompt, prompt_of_trajectory, trajectory_row
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.trajectory import Trajectory

from .access import permitted_index
from .addresses import DATABASE, compare_url, group_url, integer, trajectory_url
from .alignment import Alignment, align
from .bounds import ask
from .branches import asked_branch, branches_of
from .compare_pair import usual_pair
from .edge import Route
from .facts_beside import expected_beside, facts_beside, measures_beside
from .filter_names import refuse_unknown_options
from .frame import render, trail
from .missing import no_trajectory
from .queries import bounded
from .records import UNREADABLE, explained, load_for_page, remarks_of, room_for, roots_of
from .siblings import Group, prompt_group
from .success_rules import Rule, rule_of_trajectory

if TYPE_CHECKING:
    from datasette.app import Datasette

SHOWN = ("runs", "shards", "prompt_groups")  # besides the trajectories themselves


@dataclass(frozen=True)
class Compared:
    """One side: its row, and its trajectory or else the problem that keeps it from being read."""

    row: dict[str, Any]
    trajectory: Trajectory | None
    problem: str | None
    prompt: int | None
    key: str | None  # of the prompt
    rule: Rule


def routes() -> list[Route]:
    """Return the address of this page, another by which it is guessed, and what answers them."""
    return [
        (DATABASE + r"/compare$", compare_page),
        (DATABASE + r"/compare/(?P<a>\d+)/(?P<b>\d+)$", guessed_address),
    ]


async def guessed_address(datasette: Datasette, request: Request) -> Response:
    """Lead from two numbers in the path, where other pages have theirs, to the page of the two."""
    database = await permitted_index(datasette, request, *SHOWN)
    left, right = (integer(request.url_vars[name]) for name in ("a", "b"))
    return Response.redirect(compare_url(datasette, database, left, right))


async def compare_page(datasette: Datasette, request: Request) -> Response:
    """Answer with two trajectories, `a` and `b`; with `group` or `a` alone, lead to the usual pair."""
    database = await permitted_index(datasette, request, *SHOWN)
    refuse_unknown_options(request, ("a", "b", "group", "a_branch", "b_branch"))
    left, right = (_number(request, name) for name in ("a", "b"))
    if left is None or right is None:
        return await usual_pair(datasette, database, _number(request, "group"), left if left is not None else right)
    pair = (left, right)

    def read(connection: sqlite3.Connection) -> tuple[Compared, Compared, Group | None]:
        roots = roots_of(datasette, database)
        sides = _read(connection, roots, left), _read(connection, roots, right)
        return *sides, prompt_group(connection, sides[1].row, also=left)

    sizes = [await _size(datasette, database, side) for side in pair]
    async with room_for(datasette, max(sizes)):
        one, other, group = await ask(datasette, database, read)
    branches = [
        asked_branch(side.trajectory, request.args.get(name) or None)
        for side, name in ((one, "a_branch"), (other, "b_branch"))
    ]
    context = await asyncio.to_thread(_context, datasette, database, one, other, group, branches)
    status = 200 if one.problem is None and other.problem is None else 404
    return await render(datasette, request, database, "compare.html", context, status)


async def _size(datasette: Datasette, database: str, identity: int) -> int:
    row = await ask(datasette, database, lambda connection: trajectory_row(connection, identity))
    if row is None:
        raise await no_trajectory(datasette, database, identity)
    return row["byte_length"] if isinstance(row["byte_length"], int) else 0


def _read(connection: sqlite3.Connection, roots: Roots, identity: int) -> Compared:
    row = trajectory_row(connection, identity)
    if row is None:
        raise NotFound(f"This index has no trajectory {identity}.")
    row = as_recorded(connection, bounded(row))
    number = prompt_of_trajectory(connection, identity)
    known = number, key_of_prompt(connection, number), rule_of_trajectory(connection, row)
    try:
        return Compared(row, load_for_page(connection, identity, roots), None, *known)
    except UNREADABLE as error:
        return Compared(row, None, explained(error)[0], *known)


def _number(request: Request, name: str) -> int | None:
    text = request.args.get(name)
    return None if text in (None, "") else integer(text)


def _context(
    datasette: Datasette, database: str, one: Compared, other: Compared, group: Group | None, branches: list[int]
) -> dict[str, Any]:
    row = one.row
    groups = [side.row["prompt_group_id"] for side in (one, other)]
    same_group = groups[0] is not None and groups[0] == groups[1]
    sides = [_side(datasette, database, side, branch) for side, branch in zip((one, other), branches, strict=True)]
    alignment = _alignment(one, other, branches)

    def beside(sibling: int) -> str:
        """Return the address where a sibling is the right side; the one on the left changes places with the other."""
        left = other.row["id"] if sibling == row["id"] else row["id"]
        return compare_url(datasette, database, left, sibling)

    return {
        "styles": ["compare.css"],
        "title": f"trajectories {row['id']} and {other.row['id']}",
        "trail": trail(
            datasette,
            database,
            (row["run_id"], row["run"]),
            (row["step"],),
            row["prompt_group_id"] if same_group else None,
            group.prompt if same_group and group else None,
        ),
        "within": [("run_id", str(row["run_id"]))] if row["run_id"] == other.row["run_id"] else [],
        "sides": sides,
        "same_group": same_group,
        "rules": rules_in_words([row["id"], other.row["id"]], [one.rule.words, other.rule.words]),
        "prompts": prompts_in_words((one.prompt, other.prompt), (one.key, other.key)),
        "group": group,
        **_beside_right(group, row["id"], other.row["id"]),
        "groups": [(number, number and group_url(datasette, database, number)) for number in groups],
        "beside": beside,
        "swap_url": beside(row["id"]),
        "facts": [*expected_beside(one.trajectory, other.trajectory), *facts_beside(row, other.row)],
        "measures": measures_beside((row, other.row), (one.trajectory, other.trajectory)),
        "derived": DERIVED if any(side.row["advantage_derived"] is not None for side in (one, other)) else None,
        "alignment": alignment,
        "ends": list(zip(sides, (alignment.left, alignment.right), strict=True)) if alignment else [],
    }


def _beside_right(group: Group | None, left: int, right: int) -> dict[str, int | None]:
    """Return the trajectories of the group before and after the right side, the left one left out."""
    listed = [one.id for one in group.siblings if one.id != left] if group else []
    if right not in listed:
        return {"previous": None, "next": None}
    at = listed.index(right)
    return {"previous": listed[at - 1] if at else None, "next": listed[at + 1] if at + 1 < len(listed) else None}


def _alignment(one: Compared, other: Compared, branches: list[int]) -> Alignment | None:
    if one.trajectory is None or other.trajectory is None:
        return None
    left, right = (
        branches_of(side.trajectory)[branch - 1].messages
        for side, branch in zip((one, other), branches, strict=True)
        if side.trajectory is not None
    )
    return align(left, right)


def _side(datasette: Datasette, database: str, side: Compared, branch: int) -> dict[str, Any]:
    count = len(branches_of(side.trajectory)) if side.trajectory is not None else 1
    asked = branch if count > 1 else None

    def address(message: int | None = None) -> str:
        found = trajectory_url(datasette, database, side.row["id"], branch=asked, message=message)
        return found if message is None else f"{found}#m{message}"

    return {
        "row": side.row,
        "problem": side.problem,
        "remarks": remarks_of(side.trajectory) if side.trajectory is not None else [],
        "branch": branch,
        "branches": count,
        "url": address,
    }
