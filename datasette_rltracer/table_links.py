"""What the cells of an index's tables are shown as: where they lead, and long ones folded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from markupsafe import Markup

from rltracer_sqlite.amounts import plural
from rltracer_sqlite.metadata import table_descriptions

from .addresses import group_url, prompt_url, run_url, step_url, table_url, trajectory_url
from .indexes import is_known_index, is_rollout_index
from .kept import static_url
from .selection import at
from .text import visible

if TYPE_CHECKING:
    from datasette.app import Datasette


class TableRow(Protocol):
    """A row of a table as Datasette gives it: one of SQLite's, or its own with foreign keys that have labels."""

    def __getitem__(self, column: str, /) -> Any: ...


Address = Callable[["Datasette", str, TableRow], str | None]

OURS = frozenset(table_descriptions())  # the tables and views that an index has; others in its file are somebody else's
FIRST_AND_LAST = ("step_first", "step_last")
LONGEST_CELL = 400  # characters; a preview has no more, a recorded id may
FOLDED = {("runs", "mapping")}  # of many lines: the mapping of a run would fill the page of its table
LONGEST_FOLDED = 20_000  # characters


def table_files(
    datasette: Datasette, database: str | None, table: str | None, view_name: str | None, name: str
) -> list[str]:
    """Return the address of a static file that the page of a table or a view of an index has, and other pages not."""
    if view_name == "table" and is_known_index(datasette, database) and table in OURS:
        return [static_url(datasette, name)]
    return []


def _filtered(table: str, **columns: str) -> Address:
    """Return a function from a row to the address of `table`, filtered by columns of that row."""
    return lambda datasette, database, row: table_url(
        datasette, database, table, **{name: _value(row, column) for name, column in columns.items()}
    )


def _run(row_column: str = "run_id") -> Address:
    return _numbered(lambda datasette, database, row, run: run_url(datasette, database, run), row_column)


def _step(column: str = "step", split: bool = False) -> Address:
    def address(datasette: Datasette, database: str, row: TableRow) -> str | None:
        run, step = _value(row, "run_id"), _value(row, column)
        if not isinstance(run, int) or not isinstance(step, (int, type(None))):
            return None
        pairs = [at("split", _value(row, "split"))] if split else []
        return step_url(datasette, database, run, step, pairs)

    return address


def _group(key: str) -> Address:
    return _numbered(lambda datasette, database, row, group: group_url(datasette, database, group), key)


def _prompt() -> Address:
    """Return a function from a row of a prompt in a run to its page over all steps, of the row's split and env."""

    def address(datasette: Datasette, database: str, row: TableRow) -> str | None:
        run, prompt = _value(row, "run_id"), _value(row, "prompt_id")
        if not isinstance(run, int) or not isinstance(prompt, int):
            return None
        pairs = [(name, _value(row, name)) for name in ("split", "env")]
        return prompt_url(datasette, database, run, prompt, pairs)

    return address


def _trajectory(key: str) -> Address:
    return _numbered(lambda datasette, database, row, number: trajectory_url(datasette, database, number), key)


def _numbered(address: Callable[[Datasette, str, TableRow, int], str], key: str) -> Address:
    """Return a function from a row to an address, or to None where the row's key is no number."""

    def find(datasette: Datasette, database: str, row: TableRow) -> str | None:
        number = _value(row, key)
        return address(datasette, database, row, number) if isinstance(number, int) else None

    return find


def _value(row: TableRow, column: str) -> Any:
    """Return a row's value; a foreign key that Datasette has expanded is a dictionary of value and label."""
    value = row[column]
    return value["value"] if isinstance(value, dict) else value


OF_A_RUN = (
    "steps", "shards", "prompt_groups", "trajectories", "annotations", "step_values",
    "prompt_pass_rates", "step_summary", "tool_use", "unread_steps", "run_problems", "prompt_windows",
    "window_summary", "prompt_changes", "advantages",
)  # fmt: skip
OF_A_PROMPT = ("prompt_pass_rates", "prompt_windows", "prompt_changes")
OF_A_STEP = (
    "prompt_groups", "trajectories", "shards", "step_values", "step_summary", "tool_use", "unread_steps",
    "run_problems", "advantages",
)  # fmt: skip

LINKS: Mapping[tuple[str, str], Address] = {
    **{(table, "run_id"): _run() for table in OF_A_RUN},
    **{(table, "step"): _step() for table in OF_A_STEP},
    **{(table, column): _step(column) for table in ("prompt_windows", "window_summary") for column in FIRST_AND_LAST},
    ("runs", "id"): _run("id"),
    ("runs", "name"): _run("id"),
    ("steps", "step"): _step(split=True),
    ("steps", "trajectories"): _filtered("trajectories", run_id="run_id", step="step", split="split"),
    ("steps", "prompt_groups"): _filtered("prompt_groups", run_id="run_id", step="step", split="split"),
    ("step_summary", "run"): _run(),
    ("tool_use", "trajectories"): _filtered(
        "trajectories", run_id="run_id", step="step", split="split", env="env", tools__arraycontains="tool"
    ),
    ("unread_steps", "run"): _run(),
    ("run_problems", "run"): _run(),
    ("prompt_groups", "id"): _group("id"),
    ("prompt_groups", "prompt_id"): _group("id"),
    ("prompt_groups", "group_id"): _group("id"),
    ("prompt_groups", "trajectories"): _filtered("trajectories", prompt_group_id="id"),
    ("prompts", "preview"): _filtered("prompt_groups", prompt_id="id"),
    **{(view, column): _prompt() for view in OF_A_PROMPT for column in ("prompt_id", "preview")},
    ("trajectories", "id"): _trajectory("id"),
    ("trajectories", "uid"): _trajectory("id"),
    ("trajectories", "preview"): _trajectory("id"),
    ("trajectories", "prompt_group_id"): _group("prompt_group_id"),
    ("trajectories", "group_id"): _group("prompt_group_id"),
    ("trajectories", "episode_id"): _filtered("trajectories", run_id="run_id", episode_id="episode_id"),
    ("trajectories", "dispatch_step"): _step("dispatch_step"),
    ("trajectories", "ship_step"): _step("ship_step"),
    ("advantages", "trajectory_id"): _trajectory("trajectory_id"),
    ("advantages", "prompt_group_id"): _group("prompt_group_id"),
    ("annotations", "uid"): _trajectory("trajectory_id"),
    ("annotations", "trajectory_id"): _trajectory("trajectory_id"),
    ("annotations", "ship_step"): _step("ship_step"),
}


def cell_link(
    datasette: Datasette, database: str, table: str | None, column: str, row: TableRow, value: Any
) -> Awaitable[Markup | None] | None:
    """Return a coroutine for a cell as a link or folded, or None where the cell is not ours.

    `table` is None on pages of arbitrary SQL, which can make up any row, so those never get a link.
    """
    if (table, column) in FOLDED and isinstance(value, str):
        return _folded(datasette, database, value)
    find_address = LINKS.get((table or "", column))
    if find_address is None or value is None:
        return None
    return _cell_link(datasette, database, find_address, row, value)


async def _folded(datasette: Datasette, database: str, value: str) -> Markup | None:
    if not await is_rollout_index(datasette, database):
        return None
    shown = value if len(value) <= LONGEST_FOLDED else f"{value[:LONGEST_FOLDED]}…"
    return Markup("<details><summary>{}</summary><pre>{}</pre></details>").format(
        plural(len(value.splitlines()), "line"), visible(shown)
    )


async def _cell_link(
    datasette: Datasette, database: str, find_address: Address, row: TableRow, value: Any
) -> Markup | None:
    address = await _address(datasette, database, find_address, row)
    if address is None:
        return None
    # A foreign key comes with the label of the row that it leads to.
    text = str((value.get("label") or value["value"]) if isinstance(value, dict) else value)
    return Markup('<a href="{}">{}</a>').format(
        address, visible(text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…")
    )


async def _address(datasette: Datasette, database: str, find_address: Address, row: TableRow) -> str | None:
    """Return where a row leads, or None where the database is no index or the row has not what an address needs."""
    if not await is_rollout_index(datasette, database):
        return None
    try:
        return find_address(datasette, database, row)
    except (KeyError, IndexError):
        return None  # a column that the visitor has left out, or that the index has not


ROWS: Mapping[str, tuple[Address, str]] = {
    "trajectories": (_trajectory("id"), "Read the trajectory"),
    "prompt_groups": (_group("id"), "Read the prompt group"),
    "runs": (_run("id"), "Look at the run"),
    "steps": (_step(split=True), "Look at the step"),
}


def row_links(datasette: Datasette, database: str, table: str, row: TableRow) -> Awaitable[list[dict[str, str]]] | None:
    """Return a coroutine for the entries of a row's menu (Datasette 1.0), or None for other tables."""
    return _row_links(datasette, database, table, row) if table in ROWS else None


async def _row_links(datasette: Datasette, database: str, table: str, row: TableRow) -> list[dict[str, str]]:
    find_address, label = ROWS[table]
    address = await _address(datasette, database, find_address, row)
    return [{"href": address, "label": label}] if address else []
