"""A chart of a run as `rltracer plot` reads it: rows in as many windows as fit, and what is said of them."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, NamedTuple

from .report import writes_to_terminal
from .visible import in_line

if TYPE_CHECKING:
    from ..charts import Filters, Query
    from ..charts.figure import Figure


class Drawn(NamedTuple):
    """A chart, the number of steps that each of its windows is of, and the `usual` one, on its page and in files.

    `rule` is the success rule with what it leaves unscored, and `left` what of the run is not drawn; both may be "".
    """

    figure: Figure
    window: int
    usual: int
    rule: str
    left: str

    @property
    def said(self) -> str:
        """The caption. What is amiss with the reading of the run is not in it: that is told with what lists it."""
        return " ".join(filter(None, (self.figure.words, self.rule, self.left)))


def drawn_chart(connection: sqlite3.Connection, chart: str, filters: Filters, run: str, is_printed: bool) -> Drawn:
    """Return a chart of the run of this name, for a file, or as it fits where it is printed. Raises ChartError."""
    from ..charts import find_span, plan_query, provide_square_root, read_rows
    from ..charts.figure import figure_of
    from ..charts.unread import read_unread

    provide_square_root(connection)
    span = find_span(connection, filters.run_id)
    query = plan_query(chart, filters, span, _most_windows(chart) if is_printed else None)
    rows, unread = read_rows(connection, query), read_unread(connection, query)
    rule = _rule(connection, chart, query) if rows else ""
    usual = plan_query(chart, filters, span).window
    return Drawn(figure_of(chart, query, rows, rule, unread, run), query.window, usual, rule, unread.said(chart))


def _most_windows(chart: str) -> int | None:
    """Return how many windows the terminal has room for; a program takes as many as a page has."""
    from .bars import TABLES

    return TABLES[chart].most_windows if writes_to_terminal() else None


def _rule(connection: sqlite3.Connection, chart: str, query: Query) -> str:
    from ..charts.scoring import scoring_query, scoring_words
    from ..reward_parts import reward_parts

    scoring = scoring_query(chart, query)
    if scoring is None:
        return ""
    path, threshold, trajectories, scored, prompts, scored_prompts = connection.execute(*scoring).fetchone()
    split, parts = query.parameters["split"], reward_parts(connection, int(query.parameters["run_id"]), path)
    return in_line(scoring_words(path, threshold, trajectories, scored, prompts, scored_prompts, split, parts))
