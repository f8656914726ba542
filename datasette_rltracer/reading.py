"""What the template of a trajectory's page is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .addresses import permanent_url, row_url, static_url, table_url, trajectory_url
from .conversation import Page, read_page
from .facts import number, sections
from .rows import MARKS, Group
from .text import Text, cut, first_words, json_text

if TYPE_CHECKING:
    from rltracer_sqlite.model import Trajectory

    from .pages import Found

MOST_BRANCHES = 100
MOST_ERRORS = 20
MOST_TOOLS = 200
SHORT_TEXT = 4_000  # characters of an error or of a tool's definition


@dataclass(frozen=True)
class Branch:
    """One root-to-leaf path of a trajectory; `number` counts from 1."""

    number: int
    messages: Sequence[Mapping[str, Any]]
    trained: bool | None


@dataclass(frozen=True)
class Error:
    """A recorded error: its type and message, and whatever else is recorded of it."""

    type: str
    message: Text
    rest: Text | None


def reading_context(datasette: Any, database: str, found: Found, branch: int, args: Any) -> dict[str, Any]:
    """Return the context of the page of a trajectory."""
    row, trajectory = found.row, found.trajectory
    start, full = _place(args.get("start")) or 0, _place(args.get("full"))
    branches = branches_of(trajectory) if trajectory is not None else []
    page = read_page(branches[branch - 1].messages if branches else [], start, full)
    asked = branch if args.get("branch") is not None else None
    context = {
        "database": database,
        "table": "trajectories",
        "stylesheet": static_url(datasette, "rltracer.css"),
        "row": row,
        "mark": MARKS.get(row["success"], MARKS[None]),
        "group": found.group,
        "marks": MARKS,
        "number": number,
        "problem": found.problem,
        "page": page,
        "first_words": first_words,
        "branch": branch,
        "branches": _window(branches, branch),
        "branch_count": len(branches),
        "sections": sections(row, trajectory.metadata if trajectory else None),
        "errors": recorded_errors(trajectory.metadata.get("errors")) if trajectory else [],
        "tools": offered_tools(trajectory.tools) if trajectory else [],
        "tool_count": len(trajectory.tools) if trajectory else 0,
    }
    return {**context, **_addresses(datasette, database, row, found.group, page, asked, start)}


def _addresses(
    datasette: Any, database: str, row: dict[str, Any], group: Group | None, page: Page, asked: int | None, start: int
) -> dict[str, Any]:
    """Return the links of the page. Those to other parts of the trajectory stay on the branch that was asked for."""

    def here(**query: Any) -> str:
        return trajectory_url(datasette, database, row["id"], **{"branch": asked, "start": start or None, **query})

    addresses = {
        "here": here,
        "to": lambda trajectory: trajectory_url(datasette, database, trajectory),
        "record_url": trajectory_url(datasette, database, row["id"], "/record"),
        "pretty_url": trajectory_url(datasette, database, row["id"], "/record", pretty=1),
        "json_url": trajectory_url(datasette, database, row["id"], ".json", branch=asked),
        "permanent_url": permanent_url(datasette, database, row["run"], row["uid"]),
        "row_url": row_url(datasette, database, "trajectories", row["id"]),
        "run_url": row_url(datasette, database, "runs", row["run_id"]),
        "shard_url": row_url(datasette, database, "shards", row["shard_id"]),
        "step_url": table_url(
            datasette, database, "trajectories", run_id=row["run_id"], step=row["step"], split=row["split"]
        ),
        "previous_url": None,
        "next_url": None,
    }
    if group is not None:
        key = row["prompt_group_id"]
        addresses["group_url"] = row_url(datasette, database, "prompt_groups", key)
        addresses["group_rows_url"] = table_url(datasette, database, "trajectories", prompt_group_id=key)
        beside = {sibling.place: sibling.id for sibling in group.siblings}
        for name, place in (("previous_url", (group.place or 0) - 1), ("next_url", (group.place or 0) + 1)):
            if place in beside:
                addresses[name] = trajectory_url(datasette, database, beside[place])
    return addresses


def branches_of(trajectory: Trajectory) -> list[Branch]:
    """Return the branches of a trajectory, at least one; a source need not know which of them are trained on."""
    branches = trajectory.branches or [trajectory.messages]
    trained = [*trajectory.trained, *[None] * len(branches)]
    return [Branch(number, messages, trained[number - 1]) for number, messages in enumerate(branches, start=1)]


def _window(branches: list[Branch], current: int) -> list[Branch]:
    """Return the branches that are listed: those around the current one, where there are many."""
    first = max(0, min(current - MOST_BRANCHES // 2, len(branches) - MOST_BRANCHES))
    return branches[first : first + MOST_BRANCHES]


def recorded_errors(errors: Any) -> list[Error]:
    """Return recorded errors, whatever their form, to be shown."""
    return [_error(error) for error in (errors or [])[:MOST_ERRORS]]


def _error(error: Any) -> Error:
    if not isinstance(error, Mapping):
        return Error("error", cut(error if isinstance(error, str) else json_text(error), SHORT_TEXT), None)
    kind = next((error[key] for key in ("type", "error", "name") if isinstance(error.get(key), str)), "error")
    message = next((error[key] for key in ("message", "error_chain_str", "detail") if error.get(key)), "")
    rest = {key: value for key, value in error.items() if value not in (None, kind, message)}
    text = message if isinstance(message, str) else json_text(message)
    return Error(kind, cut(text, SHORT_TEXT), cut(json_text(rest), SHORT_TEXT) if rest else None)


def offered_tools(tools: Sequence[Mapping[str, Any]]) -> list[tuple[str, Text]]:
    """Return (name, definition as JSON) of the tools that the model was offered."""
    return [
        (str((tool.get("function") or {}).get("name") or "(no name)"), cut(json_text(tool), SHORT_TEXT))
        for tool in tools[:MOST_TOOLS]
    ]


def _place(text: str | None) -> int | None:
    """Return the number of a message in an address, or None where it is none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 9 else None
