"""What the template of a trajectory's page is given: its messages in one of three views, and what is around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rltracer_sqlite.index.episodes import Episode
from rltracer_sqlite.sources.numbering import numbered
from rltracer_sqlite.tokens.templates import TOKEN_IDS
from rltracer_sqlite.trajectory import Trajectory

from .addresses import place
from .branches import Branch, around, branch_tree, branches_of
from .conversation import Page, Turn, page_of, read_page
from .expected import expected_answer
from .facts import sections
from .find import Find, find_context, find_in
from .frame import step_words, trail
from .kept import static_url
from .lens import LensPage, may_have_tokens
from .lens_kinds import LENS_NAMES
from .raw_text import RawMessage, read_raw_page
from .records import remarks_of
from .siblings import Group
from .success_rules import Rule
from .text import Text, cut, first_words, json_text
from .trajectory_links import Links

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils import MultiParams

    from .filter_values import Missing

MOST_ERRORS = 20
MOST_TOOLS = 200
LONGEST_ASKED = 60  # characters of an address that a sentence repeats
SHORT_TEXT = 4_000  # characters of an error or of a tool's definition
VIEWS = ("conversation", "raw", "tokens")


@dataclass(frozen=True)
class Found:
    """A row of the index, and its trajectory or else the `problem` that keeps it from being read."""

    row: dict[str, Any]
    trajectory: Trajectory | None = None
    problem: str | None = None
    status: int = 200
    rule: Rule | None = None  # by which it has passed or failed
    episode: Episode | None = None
    group: Group | None = None  # in the order that the address asks for
    order: str = ""  # that order in words
    beside: Mapping[str, Any] | None = None  # the neighbours among the trajectories of the group that pass the filters
    beside_groups: Mapping[str, Any] | None = None  # and those of the group
    missing_groups: Sequence[Missing] = ()  # names of filters in the address that no group has
    missing_rows: Sequence[Missing] = ()  # and no trajectory of the group
    row_filters: Sequence[str] = ()  # what its neighbours pass, in words
    carried: Sequence[tuple[str, str]] = ()  # the filters and orders in the address


@dataclass(frozen=True)
class Error:
    """A recorded error: its type and message, and whatever else is recorded of it."""

    type: str
    message: Text
    rest: Text | None


def reading_context(
    datasette: Datasette, database: str, found: Found, branch: int, args: MultiParams, lens: LensPage | None = None
) -> dict[str, Any]:
    """Return the context of the page of a trajectory; `lens` is what the view of its tokens shows."""
    row, trajectory = found.row, found.trajectory
    branches = branches_of(trajectory) if trajectory is not None else []
    view = view_of(args)
    messages = branches[branch - 1].messages if branches and view != "tokens" else []
    find = find_in(messages, args.get("find"), view)
    links = Links(datasette, database, row, found.carried, **_kept(args, branch, view, lens, find))
    return {
        "title": f"trajectory {row['id']}",
        "styles": ["lens.css"] if lens else [],
        "lens_script": static_url(datasette, "lens.js"),
        "trail": trail(
            datasette,
            database,
            (row["run_id"], row["run"]),
            (row["step"],),
            row["prompt_group_id"],
            found.group.prompt if found.group else None,
        ),
        **_found_context(found),
        **_branches_context(branches, branch),
        "view": view,
        "unknown": [*unknown_views(args, lens), *unknown_messages(args, view, len(messages))],
        "lens": lens,
        "has_tokens": may_have_tokens(trajectory),
        "page": _page(messages, view, args),
        "links": links,
        "here": links.here,
        **find_context(find, links.here(find=None, start=None)),
        "record_url": links.record,
    }


def _kept(args: MultiParams, branch: int, view: str, lens: LensPage | None, find: Find | None) -> dict[str, Any]:
    """Return what the links of the page carry on of its address."""
    return {
        "branch": branch if args.get("branch") is not None else None,
        "start": place(args.get("start")) or None,
        "view": view if view != VIEWS[0] else None,
        "lens": lens.lens if lens and args.get("lens") is not None else None,
        "find": find.text if find else None,
    }


def _branches_context(branches: list[Branch], branch: int) -> dict[str, Any]:
    listed = around(branches, branch)
    return {
        "branch": branch,
        "tree": branch_tree(listed, branch) if len(branches) > 1 else [],
        "branches": listed,
        "branch_count": len(branches),
    }


def _found_context(found: Found) -> dict[str, Any]:
    """Return what is around the messages: the row, neighbours, episode, facts, errors and tools."""
    row, trajectory = found.row, found.trajectory
    return {
        "row": row,
        "rule": found.rule,
        "within": [("run_id", str(row["run_id"]))],
        "place": numbered(row["shard_file"], row["line"], row["item"]),
        "step_words": step_words(row["step"]),
        "group": found.group,
        "beside": found.beside,
        "order": found.order,
        "beside_groups": found.beside_groups,
        "filters": found.row_filters,
        "missing_groups": found.missing_groups,
        "missing_rows": found.missing_rows,
        "episode": found.episode,
        "problem": found.problem,
        "other": _other_end(row, found.group),
        "expected": expected_answer(trajectory) if trajectory else None,
        "sections": sections(row, trajectory.metadata if trajectory else None),
        "errors": recorded_errors(trajectory.metadata.get("errors")) if trajectory else [],
        "tools": offered_tools(trajectory.tools) if trajectory else [],
        "tool_count": len(trajectory.tools) if trajectory else 0,
        "remarks": remarks_of(trajectory) if trajectory else [],
        "has_only_ids": trajectory is not None and trajectory.metadata.get("content_kind") == TOKEN_IDS,
    }


def view_of(args: MultiParams) -> str:
    """Return the view that an address asks for."""
    asked = args.get("view")
    return asked if asked in VIEWS else VIEWS[0]


def unknown_views(args: MultiParams, lens: LensPage | None = None) -> list[str]:
    """Return a sentence for the view or lens of an address where there is no such one, with what is shown instead."""
    asked: list[tuple[str, str | None, str, Sequence[str]]] = [("view", args.get("view"), VIEWS[0], VIEWS)]
    if lens and lens.lens:
        asked.append(("lens", args.get("lens"), lens.lens, LENS_NAMES))
    return [
        f"There is no {kind} “{first_words(name, LONGEST_ASKED)}”, so this is “{shown}”; known are {', '.join(known)}."
        for kind, name, shown, known in asked
        if name and name not in known
    ]


def unknown_messages(args: MultiParams, view: str, messages: int) -> list[str]:
    """Return a sentence for each message of an address that the branch has not, or nothing where it is of tokens."""
    if view == "tokens":
        return []
    asked = dict.fromkeys(
        text for name in ("message", "start") if (text := args.get(name)) and _held(text, messages) is None
    )
    have = f"this branch has {messages:,}, counted from 0 in an address"
    return [f"There is no message “{first_words(text, LONGEST_ASKED)}”: {have}." for text in asked]


def _held(text: str | None, messages: int) -> int | None:
    """Return the number of a message in an address, or None where the branch has no such one."""
    number = place(text)
    return number if number is not None and number < messages else None


def _page(messages: Sequence[Mapping[str, Any]], view: str, args: MultiParams) -> Page[Turn] | Page[RawMessage]:
    start, wanted = (_held(args.get(name), len(messages)) for name in ("start", "message"))
    start, full = start or 0, place(args.get("full"))

    def read_raw(first: int) -> Page[RawMessage]:
        return read_raw_page(messages, first, full)

    def read(first: int) -> Page[Turn]:
        return read_page(messages, first, full)

    if view == "raw":
        return read_raw(start) if wanted is None else page_of(messages, wanted, read_raw, start)
    return read(start) if wanted is None else page_of(messages, wanted, read, start)


def _other_end(row: Mapping[str, Any], group: Group | None) -> tuple[str, int | None] | None:
    """Return what to compare with, in words and by id: the best of the group, or for the best the worst."""
    if group is None or group.best is None:
        return None
    return ("the worst", group.worst) if group.best == row["id"] else ("the best", group.best)


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
