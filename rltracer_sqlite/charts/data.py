"""From a chart's name and filters to its query, and from the query to its rows."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..amounts import plural
from ..passrates import WINDOW_SIZES
from ..unrecorded import chosen

CHARTS = ("pass_rate", "reward", "histogram", "difficulty", "length", "failures", "zero_variance")
# Charts of prompts, which the run's page and the report count with those that have no score. They have a window of its
# own for what has no step; the others are drawn over steps.
OF_PROMPTS = ("histogram", "difficulty")
FOLDER = Path(__file__).parent

# A value is bound as text and compared with '', so that the same query works on Datasette's page for SQL.
SELECTION = f"""
    run_id = :run_id and (:split = '' or {chosen("split", "split")})
    and (:env = '' or {chosen("env", "env")})
    and (:step_gte = '' or step >= :step_gte) and (:step_lte = '' or step <= :step_lte)
"""
# The last window ends with the last step, so that it is named by steps that there are. Two questions, since SQLite
# finds the least or the largest of an index at once, and both of them by reading all of it.
ORIGIN = """ends(origin, finish) as (
    select
        (select min(step) from prompt_groups where run_id = :run_id and (:step_gte = '' or step >= :step_gte)),
        (select max(step) from prompt_groups where run_id = :run_id and (:step_lte = '' or step <= :step_lte))
),
selected as not materialized (
    select *, (step - origin) / cast(:window as integer) as place,
        origin + (step - origin) / cast(:window as integer) * cast(:window as integer) as step_first,
        min(origin + ((step - origin) / cast(:window as integer) + 1) * cast(:window as integer) - 1, finish)
            as step_last
    from {table} cross join ends where {selection}
)"""
SOURCES = {
    "{groups}": ORIGIN.format(table="prompt_groups", selection=SELECTION.strip()),
    "{values}": ORIGIN.format(table="step_values", selection=SELECTION.strip()),
}
SPAN = """
select min(step) as first, max(step) as last, count(distinct split) as splits,
    (
        select split from steps where run_id = :run_id and split is not null
        group by split order by sum(trajectories) is 0, split is not 'train', split limit 1
    ) as main_split
from steps where run_id = :run_id and step is not null and trajectories > 0
"""


class ChartError(ValueError):
    """A chart that cannot be drawn as asked, in a sentence that says what to do."""


@dataclass(frozen=True)
class Filters:
    """What a chart is drawn of. Empty: everything; `window` is the steps per point or cell, None for a fitting one.

    A split or an environment of NOT_RECORDED is that of which none is recorded.
    """

    run_id: int
    split: str = ""
    env: str = ""
    step_gte: str = ""
    step_lte: str = ""
    window: int | None = None


@dataclass(frozen=True)
class Span:
    """The steps of a run: the first and last with a trajectory, how many splits there are, and which one stands for it.

    That is train, where the run has any of it, else the first by name.
    """

    first: int | None
    last: int | None
    splits: int
    main_split: str | None


@dataclass(frozen=True)
class Query:
    """SQL with its parameters, all text, and the window that was chosen."""

    sql: str
    parameters: dict[str, str]
    window: int


@cache
def _spec_text(chart: str) -> str:
    if chart not in CHARTS:
        raise ChartError(f"There is no chart {chart!r}; there are {', '.join(CHARTS)}")
    return (FOLDER / f"{chart}.vl.json").read_text("utf-8")


@cache
def _sql_text(chart: str) -> str:
    sql = (FOLDER / f"{chart}.sql").read_text("utf-8")
    for marker, source in SOURCES.items():
        sql = sql.replace(marker, source)
    return sql


def load_spec(chart: str) -> dict[str, Any]:
    """Return the Vega-Lite spec of a chart; its data source is named "rows". Raises ChartError for another name."""
    spec: dict[str, Any] = json.loads(_spec_text(chart))
    return spec


def span_query(run_id: int) -> tuple[str, dict[str, str]]:
    """Return the query for the Span of a run, which `plan_query` needs."""
    return SPAN, {"run_id": str(run_id)}


def find_span(connection: sqlite3.Connection, run_id: int) -> Span:
    """Return the Span of a run."""
    return Span(*connection.execute(*span_query(run_id)).fetchone())


def plan_query(chart: str, filters: Filters, span: Span, most_windows: int | None = None) -> Query:
    """Return the query of a chart: as many windows as it can show, unless the filters ask for a size.

    `most_windows` are those of each split that there is room for. Raises ChartError for an unknown chart, or for a
    window so small that the rows would be too many.
    """
    about = load_spec(chart)["usermeta"]["rltracer"]
    split = filters.split
    if about["one_split"] and not split:
        split = span.main_split or ""
    steps = _step_count(filters, span)
    most = about["most_windows"] // (1 if split else max(span.splits, 1))
    room = min(most, most_windows or most)
    window = filters.window or next(size for size in (*WINDOW_SIZES, steps) if -(-steps // size) <= room)
    if window < 1 or -(-steps // window) > most:
        least = -(-steps // most)
        raise ChartError(f"This chart needs windows of at least {least} for {plural(steps, 'step')}, not of {window}")
    parameters = {
        "run_id": str(filters.run_id),
        "split": split,
        "env": filters.env,
        "step_gte": filters.step_gte,
        "step_lte": filters.step_lte,
        "window": str(window),
    }
    return Query(_sql_text(chart), parameters, window)


def _step_count(filters: Filters, span: Span) -> int:
    if span.first is None or span.last is None:
        return 1
    first = max(span.first, int(filters.step_gte)) if filters.step_gte else span.first
    last = min(span.last, int(filters.step_lte)) if filters.step_lte else span.last
    return max(last - first + 1, 1)


def read_rows(connection: sqlite3.Connection, query: Query) -> list[dict[str, Any]]:
    """Return the rows of a chart; an infinite number becomes None, because JSON has none."""
    cursor = connection.execute(query.sql, query.parameters)
    names = [column[0] for column in cursor.description]
    return [finite(dict(zip(names, row, strict=True))) for row in cursor]


def finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose infinite numbers are None."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}


def provide_square_root(connection: sqlite3.Connection) -> None:
    """Define sqrt() where SQLite was built without it: the intervals need it."""
    try:
        connection.execute("select sqrt(4)").fetchone()
    except sqlite3.OperationalError:
        connection.create_function("sqrt", 1, _square_root, deterministic=True)


def _square_root(value: float | None) -> float | None:
    return None if value is None or value < 0 else math.sqrt(value)
