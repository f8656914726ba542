"""The charts of a run: one Vega-Lite spec and one query each, for the browser and for the command line."""

from __future__ import annotations

from .data import CHARTS, ChartError, Filters, Query, find_span, load_spec, plan_query, provide_square_root, read_rows
from .words import describe_rows

__all__ = [
    "CHARTS",
    "ChartError",
    "Filters",
    "Query",
    "describe_rows",
    "find_span",
    "load_spec",
    "plan_query",
    "provide_square_root",
    "read_rows",
]
