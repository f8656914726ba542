"""The pages of a trajectory: its conversation, the same as JSON, and the record as it stands in its file."""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from datasette.utils import tilde_decode
from datasette.utils.asgi import Request, Response

from rltracer_sqlite.index.episodes import episode_traces
from rltracer_sqlite.index.queries import as_recorded, trajectory_row
from rltracer_sqlite.trajectory import Trajectory

from .access import permitted_index
from .addresses import DATABASE, compare_url, integer, trajectory_url
from .bounds import ask, gates
from .branches import asked_branch, branches_of
from .edge import Route
from .filter_values import OF_ROWS, missing_names
from .frame import render
from .group_selection import order_words, refuse_unknown, selections
from .lens import read_lens
from .missing import no_recorded_id, no_trajectory
from .queries import answers, bounded
from .records import LARGE_RECORD, LARGEST_RECORD, UNREADABLE, explained, load_for_page, room_for, roots_of
from .selection import NO_NEIGHBOURS, in_words, neighbours
from .siblings import prompt_group, trajectory_by_uid
from .stream import PatientResponse
from .success_rules import rule_of_trajectory
from .text import reindented
from .trajectory_context import Found, reading_context, view_of

if TYPE_CHECKING:
    from datasette.app import Datasette

RECORD_LIMIT = LARGEST_RECORD  # bytes of a record that are sent as they are
SHOWN = ("runs", "shards", "prompt_groups", "annotations")  # besides the trajectory itself
BESIDE = "with"  # as in `rltracer inspect --trajectory 3 --with 5`
PRETTY_LIMIT = 4 << 20  # bytes of a record that are sent with line breaks
LOCKED_DOWN = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
}


def routes() -> list[Route]:
    """Return the addresses of these pages and what answers them."""
    return [
        (DATABASE + r"/trajectory/(?P<id>\d+)$", trajectory_page),
        (DATABASE + r"/trajectory/(?P<id>\d+)\.json$", trajectory_json),
        (DATABASE + r"/trajectory/(?P<id>\d+)/record$", trajectory_record),
        (DATABASE + r"/t/(?P<run>[^/]+)/(?P<uid>.+)$", permanent_link),
    ]


async def trajectory_page(datasette: Datasette, request: Request) -> Response:
    """Answer with the conversation. A record that cannot be read leaves what the index knows, and says why.

    BESIDE with the number of another trajectory leads to the page of the two.
    """
    database = await permitted_index(datasette, request, *SHOWN)
    if (other := request.args.get(BESIDE)) and other.isascii() and other.isdigit():
        pair = integer(request.url_vars["id"]), integer(other)
        return Response.redirect(compare_url(datasette, database, *pair))
    found = await _find(datasette, database, request)
    found = await _beside(datasette, database, request, found)
    branch, lens = asked_branch(found.trajectory, request.args.get("branch")), None
    if found.trajectory is not None and view_of(request.args) == "tokens":
        lens = await asyncio.to_thread(read_lens, found.trajectory, branch, request.args)
    context = await asyncio.to_thread(reading_context, datasette, database, found, branch, request.args, lens)
    return await render(datasette, request, database, "trajectory.html", context, found.status)


async def _beside(datasette: Datasette, database: str, request: Request, found: Found) -> Found:
    """Return what was found, with its prompt group and its neighbours under the filters and orders of the address."""
    key, row = found.row["prompt_group_id"], found.row
    if key is None:
        await refuse_unknown(datasette, database, request)
        return found
    groups, rows = await selections(datasette, database, request, row)
    rows = replace(rows, fixed=[("prompt_group_id", str(key))])
    one, several = await answers(datasette, request, database, neighbours(rows, row["id"]), neighbours(groups, key))
    group = await ask(datasette, database, lambda connection: prompt_group(connection, row, rows.ordering()))
    carried = [*groups.chosen, *groups.sorting, *rows.chosen, *rows.sorting]
    asked, missing_groups, missing_rows = (datasette, request, database), [], []
    if several.first(**NO_NEIGHBOURS)["listed"] == 0:
        missing_groups = await missing_names(*asked, "prompt_groups")
    if one.first(**NO_NEIGHBOURS)["listed"] == 0:
        missing_rows = await missing_names(*asked, "trajectories", rows.fixed, OF_ROWS)
    return replace(
        found,
        group=group,
        order=order_words(rows),
        beside=one.first(**NO_NEIGHBOURS),
        beside_groups=several.first(**NO_NEIGHBOURS),
        missing_groups=missing_groups,
        missing_rows=missing_rows,
        row_filters=[in_words(pair) for pair in rows.chosen],
        carried=carried,
    )


async def trajectory_json(datasette: Datasette, request: Request) -> Response:
    """Answer with the decoded trajectory: one branch's messages, what its record says, and its branches."""
    database = await permitted_index(datasette, request, *SHOWN)
    await refuse_unknown(datasette, database, request)
    found = await _find(datasette, database, request)
    if found.trajectory is None:
        return _json({"ok": False, "error": found.problem, "status": found.status}, found.status)
    branch = asked_branch(found.trajectory, request.args.get("branch"))
    value = {"ok": True, **_decoded(found.row, found.trajectory, branch)}
    return await asyncio.to_thread(_json, value)


async def trajectory_record(datasette: Datasette, request: Request) -> Response:
    """Answer with the record's bytes as plain text, or with line breaks added to them (`?pretty=1`)."""
    database = await permitted_index(datasette, request, *SHOWN)
    await refuse_unknown(datasette, database, request)
    found = await _find(datasette, database, request)
    if found.trajectory is None:
        return Response.text(f"{found.problem}\n", status=found.status, headers=LOCKED_DOWN)
    raw, pretty = found.trajectory.raw, request.args.get("pretty")
    limit = PRETTY_LIMIT if pretty else RECORD_LIMIT
    if len(raw) > limit:
        sentence = (
            f"The record has {len(raw):,} bytes; at most {limit:,} are sent{' with line breaks' * bool(pretty)}.\n"
        )
        return Response.text(sentence, status=413, headers=LOCKED_DOWN)
    body = await asyncio.to_thread(_with_line_breaks, raw) if pretty else raw
    answer = PatientResponse(body, content_type="text/plain; charset=utf-8", headers=dict(LOCKED_DOWN))
    if len(body) >= LARGE_RECORD:
        await gates(datasette).downloads.enter()
        answer.on_end = gates(datasette).downloads.leave
    return answer


def _with_line_breaks(raw: bytes) -> bytes:
    return reindented(raw.decode("utf-8", "replace")).encode()


async def permanent_link(datasette: Datasette, request: Request) -> Response:
    """Send the visitor from a run's name or number and a recorded id to the page of the trajectory that has it now."""
    database = await permitted_index(datasette, request, *SHOWN)
    run, uid = (tilde_decode(unquote(request.url_vars[name])) for name in ("run", "uid"))
    found = await ask(datasette, database, lambda c: trajectory_by_uid(c, run, uid))
    if found is None:
        raise await no_recorded_id(datasette, database, run, uid)
    query = f"?{request.query_string}" if request.query_string else ""
    return Response.redirect(trajectory_url(datasette, database, found) + query)


async def _find(datasette: Datasette, database: str, request: Request) -> Found:
    identity = integer(request.url_vars["id"])

    def read(connection: sqlite3.Connection) -> Found | None:
        row = trajectory_row(connection, identity)
        if row is None:
            return None
        row = bounded(row)
        rule, episode = rule_of_trajectory(connection, row), episode_traces(connection, row)
        try:
            trajectory = load_for_page(connection, identity, roots_of(datasette, database))
        except UNREADABLE as error:
            return Found(as_recorded(connection, row), None, *explained(error), rule, episode)
        # A file may have been sealed since it was indexed: the page names the one that was read.
        row["shard_file"] = trajectory.metadata.get("locator", {}).get("path", row["shard_file"])
        return Found(row, trajectory, rule=rule, episode=episode)

    found = None
    known = await ask(datasette, database, lambda connection: trajectory_row(connection, identity))
    if known is not None:
        async with room_for(datasette, known["byte_length"]):
            found = await ask(datasette, database, read)
    if found is None:
        raise await no_trajectory(datasette, database, identity)
    return found


def _decoded(row: dict[str, Any], trajectory: Trajectory, branch: int) -> dict[str, Any]:
    branches = branches_of(trajectory)
    return {
        "id": row["id"],
        "uid": row["uid"],
        "run": row["run"],
        "branch": branch,
        "branches": [{"branch": b.number, "messages": len(b.messages), "trained": b.trained} for b in branches],
        "messages": branches[branch - 1].messages,
        "tools": trajectory.tools,
        "metadata": trajectory.metadata,
    }


def _json(value: dict[str, Any], status: int = 200) -> Response:
    try:
        # Not as UTF-8: half a surrogate pair, which JSON can carry, can only be sent escaped.
        body = json.dumps(_finite(value), allow_nan=False, default=str)
    except RecursionError:
        body, status = json.dumps({"ok": False, "error": "The record is nested too deeply.", "status": 422}), 422
    headers = {"x-content-type-options": "nosniff"}
    return Response(body, status=status, content_type="application/json; charset=utf-8", headers=headers)


def _finite(value: Any) -> Any:
    """Return a value in which NaN and the infinities, which JSON does not have, are null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, (list, tuple)) else value
