"""What a chart is drawn from, asked of an index as its visitor may: the rows, what is said of them, and their links."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import BadRequest

from rltracer_sqlite.charts import ChartError, Filters, Query, load_spec, plan_query
from rltracer_sqlite.charts.data import Span, finite, span_query
from rltracer_sqlite.charts.figure import Figure, figure_of
from rltracer_sqlite.charts.nothing import why_nothing
from rltracer_sqlite.charts.render import chart_content
from rltracer_sqlite.charts.scoring import scoring_query, scoring_words
from rltracer_sqlite.charts.unread import Unread, unread_of, unread_query
from rltracer_sqlite.passrates import WINDOW_SIZES
from rltracer_sqlite.reward_parts import reward_parts

from . import compat
from .bounds import ask
from .chart_filters import chart_url
from .indexes import file_name
from .queries import bounded, sql_url
from .selection import recorded

if TYPE_CHECKING:
    from datasette.app import Datasette

    from .compat import Actor

Row = dict[str, Any]


async def drawn_from(
    datasette: Datasette, actor: Actor, database: str, chart: str, filters: Filters, run: str
) -> dict[str, Any]:
    """Return what the browser draws from: spec, rows, words, colours, and where marks and the SQL link lead.

    `run` is the name of the run. Raises BadRequest for filters that this chart cannot be drawn with, and
    QueryInterrupted.
    """
    query = await _query(datasette, database, chart, filters)
    found = await datasette.execute(database, query.sql, query.parameters, truncate=False)
    figure = await _figure(datasette, database, chart, query, [finite(bounded(row)) for row in found.rows], run)
    if not figure.rows:
        figure = replace(figure, words=await _why_nothing(datasette, database, chart, filters))
    may_query = await compat.can_execute_sql(datasette, actor, database)
    return {
        **chart_content(figure),
        "window": query.window,
        "links": _links(datasette, database, chart, filters, query),
        "sql_url": sql_url(datasette, database, query) if may_query else None,
        "page_url": chart_url(datasette, database, chart, filters),
    }


async def _query(datasette: Datasette, database: str, chart: str, filters: Filters) -> Query:
    [span] = (await datasette.execute(database, *span_query(filters.run_id))).rows
    try:
        return plan_query(chart, filters, Span(*span))
    except ChartError as error:
        raise BadRequest(str(error)) from None


async def _figure(datasette: Datasette, database: str, chart: str, query: Query, rows: list[Row], run: str) -> Figure:
    """Return a chart with its rows in words, the success rule behind it, what is unscored, and what was not read."""
    rule = await _rule(datasette, database, chart, query) if rows else ""
    return figure_of(chart, query, rows, rule, await _unread(datasette, database, query), run)


async def _why_nothing(datasette: Datasette, database: str, chart: str, filters: Filters) -> str:
    asked = {"split": filters.split, "env": filters.env, "first": filters.step_gte, "last": filters.step_lte}
    given = {name: int(value) if name in ("first", "last") else value for name, value in asked.items() if value}
    index = file_name(datasette, database)
    return await ask(
        datasette, database, lambda connection: why_nothing(connection, filters.run_id, chart, given, index)
    )


async def _rule(datasette: Datasette, database: str, chart: str, query: Query) -> str:
    scoring = scoring_query(chart, query)
    row = None if scoring is None else (await datasette.execute(database, *scoring)).first()
    if row is None:
        return ""
    told = bounded(row)
    of_run = (int(query.parameters["run_id"]), told["path"])
    parts = await ask(datasette, database, lambda connection: reward_parts(connection, *of_run))
    return scoring_words(**told, split=query.parameters["split"], parts=parts)


async def _unread(datasette: Datasette, database: str, query: Query) -> Unread:
    row = (await datasette.execute(database, *unread_query(query))).first()
    return Unread([], "", "") if row is None else unread_of(dict(row), query)


def _links(datasette: Datasette, database: str, chart: str, filters: Filters, query: Query) -> dict[str, Any]:
    """Return which rows a mark stands for: a table's address, fixed filters, and filters by a field of the mark."""
    rows = _linked(chart, filters, query)
    fixed = [("run_id", str(filters.run_id)), *rows.get("constant", {}).items()]
    if filters.env and "env" not in rows["filters"]:
        fixed.append(recorded(("env", filters.env)))
    for name, parameter in rows.get("parameters", {}).items():
        if query.parameters[parameter]:
            fixed.append(recorded((name, query.parameters[parameter])))
    return {
        "table": datasette.urls.table(database, rows["table"]),
        "fixed": fixed,
        "filters": rows["filters"],
        "choices": rows.get("choices"),
    }


def _linked(chart: str, filters: Filters, query: Query) -> dict[str, Any]:
    """Return the rows that the marks of a chart stand for, as its spec has them."""
    about = load_spec(chart)["usermeta"]["rltracer"]
    rows: dict[str, Any] = about["rows"]
    if rows["table"] == "prompt_windows" and (filters.step_gte or filters.step_lte or query.window not in WINDOW_SIZES):
        rows = about["rows_within_steps"]  # that view's windows begin at the run's first step, and have few sizes
    return rows
