"""A chart in the terminal: its rows as a table of numbers, each with a bar of plain characters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..charts.figure import Figure
from ..charts.words import EQUAL, step_words
from .columns import cell, cut, width_of, wrapped
from .visible import printable

EIGHTHS = " ▏▎▍▌▋▊▉"
# Columns of the screen: of a column of the table, of its number, and of a title that a column is made wider for.
NARROWEST, NUMBER, WIDEST = 20, 7, 28
NOT_READ = "not read"
Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Which rows of a chart are a line of its table, and which values of them a column each."""

    values: dict[str, str]  # the name of each value in the rows, and what it is called; "" where it is the only one
    rare: tuple[str, ...] = ()  # those of them that have a column only where any is above 0
    line: str = "step_first"  # a line per value of this
    series: tuple[str, ...] = ("split",)  # a column per value of these
    top: float | None = 1  # where the scale ends; None: at the largest value of its kind
    most_windows: int = 24
    number: Callable[[float], str] = "{:.1%}".format


def _number(value: float) -> str:
    if abs(value) >= 1e6:
        return f"{value:.1e}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


TABLES = {
    "pass_rate": Table({"pass_rate": ""}),
    "reward": Table({"mean": ""}, series=("component", "split"), top=None, number=_number),
    "histogram": Table({"share": ""}, line="bin", series=("step_first",), most_windows=6),
    "difficulty": Table({"pass_rate": ""}, line="rank", series=("step_first",), most_windows=5),
    "length": Table(
        {"completion_tokens": "tokens", "turns": "turns", "tool_calls": "tool calls"}, top=None, number=_number
    ),
    "failures": Table({"truncated": "cut off", "error": "errors"}, top=None),
    "zero_variance": Table({"zero_variance": "no signal", **EQUAL}, rare=("other_equal",)),
}
LABELS: dict[str, Callable[[Row], str]] = {
    "bin": lambda row: "–".join(f"{float(end):.0%}" for end in row["pass_bucket"].split("–")),
    "rank": lambda row: f"prompt {row['prompt_id']}",
}


def chart_lines(figure: Figure, width: int) -> Iterator[str]:
    """Yield the lines of a chart, none wider than `width`; columns that do not fit beside each other come below."""
    table, rows = TABLES[figure.chart], figure.rows
    end = "bars from 0 to 100%" if table.top else "bars up to the largest of their kind"
    yield from wrapped(printable(f"{figure.title}; {end}"), width)
    label = LABELS.get(table.line, step_words)
    told = [*rows, *(gap._asdict() for gap in figure.gaps)]
    lines = {row[table.line]: printable(label(row)) for row in sorted(told, key=lambda row: row[table.line])}
    unread = {(gap.split, gap.step_first) for gap in figure.gaps}
    columns, beginning = _columns(table, rows), max(map(width_of, lines.values()), default=0)
    least = max(NARROWEST, *(min(width_of(column.title), WIDEST) + 2 for column in columns)) if columns else NARROWEST
    together = min(max((width - beginning - 2) // least, 1), len(columns) or 1)
    room = (width - beginning - 2) // together - 2
    for start in range(0, len(columns), together):
        shown = columns[start : start + together]
        heads = (cell(column.title, room) for column in shown)
        yield cut("  ".join([" " * (beginning + 2), *heads]).rstrip(), width)
        for key, text in lines.items():
            cells = (_cell(column, key, room, table.number, (column.split, key) in unread) for column in shown)
            yield cut("  ".join([f"  {cell(text, beginning)}", *cells]).rstrip(), width)


class Column(NamedTuple):
    """A column of the table: its values by the lines, and where its scale begins and ends."""

    title: str
    split: str | None
    values: dict[Any, float]
    low: float
    high: float


def _columns(table: Table, rows: Sequence[Row]) -> list[Column]:
    columns: dict[str, Column] = {}
    for value, called in table.values.items():
        known = [row for row in rows if row[value] is not None]
        numbers = [0.0, *(row[value] for row in known)]
        if value in table.rare and not any(numbers):
            continue
        for row in known:
            title = ", ".join(filter(None, (called, *(_named(row, name) for name in table.series))))
            scale = min(numbers), table.top or max(numbers)
            column = columns.setdefault(title, Column(title, row.get("split"), {}, *scale))
            column.values[row[table.line]] = row[value]
    return list(columns.values())


def _named(row: Row, name: str) -> str:
    """Return a value that a column stands for, as it is called."""
    return step_words(row) if name == "step_first" else str(row[name] or "no split")


def _cell(column: Column, key: Any, room: int, number: Callable[[float], str], is_unread: bool) -> str:
    if (value := column.values.get(key)) is None:
        return cell(NOT_READ if is_unread else None, room)
    span = column.high - column.low
    eighths = round((room - NUMBER - 1) * 8 * min(max((value - column.low) / span, 0.0), 1.0)) if span else 0
    bar = "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
    return f"{number(value):<{NUMBER}} {bar:{room - NUMBER - 1}}"


def tab_separated(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the rows of a chart as lines of values between tabs, the names of the columns first."""
    yield "\t".join(rows[0])
    for row in rows:
        yield "\t".join("" if value is None else " ".join(printable(str(value)).split()) for value in row.values())
