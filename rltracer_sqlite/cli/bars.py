"""A chart in the terminal: its rows as a table of numbers, each with a bar of plain characters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..charts.data import load_spec
from ..charts.gaps import Window
from ..charts.words import reward_words, step_words
from .columns import cell, cut, width_of, wrapped
from .visible import printable

EIGHTHS = " ▏▎▍▌▋▊▉"
NARROWEST, NUMBER = 20, 7  # columns of the screen: of a column of the table, and of its number
NOT_READ = "not read"
Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Which rows of a chart are a line of its table, and which values of them a column each."""

    values: dict[str, str]  # the name of each value in the rows, and what it is called; "" where it is the only one
    line: str = "step_first"  # a line per value of this
    series: tuple[str, ...] = ("split",)  # a column per value of these
    top: float | None = None  # where the scale ends; None: at the largest value of its kind
    most_windows: int = 24


TABLES = {
    "pass_rate": Table({"pass_rate": ""}, top=1),
    "reward": Table({"mean": ""}, series=("name", "split")),
    "histogram": Table({"share": ""}, line="bin", series=("step_first",), top=1, most_windows=6),
    "difficulty": Table({"pass_rate": ""}, line="rank", series=("step_first",), top=1, most_windows=5),
    "length": Table({"completion_tokens": "tokens", "turns": "turns", "tool_calls": "tool calls"}),
    "failures": Table({"truncated": "cut off", "error": "errors"}),
    "zero_variance": Table(
        {"zero_variance": "no signal", "all_failed": "all failed", "all_passed": "all passed"}, top=1
    ),
}
LABELS: dict[str, Callable[[Row], str]] = {
    "bin": lambda row: row["pass_bucket"],
    "rank": lambda row: f"prompt {row['prompt_id']}",
}


def chart_lines(
    chart: str, rows: Sequence[Row], split: str, width: int, gaps: Collection[Window] = ()
) -> Iterator[str]:
    """Yield the lines of a chart, none wider than `width`; columns that do not fit beside each other come below.

    `split` is the one that all rows are of, or ""; `gaps` are the windows between them of which nothing was read.
    """
    table, title = TABLES[chart], load_spec(chart)["usermeta"]["rltracer"]["title"]
    end = f"bars from 0 to {table.top:g}" if table.top else "bars up to the largest of their kind"
    yield from wrapped(printable(f"{title}{split and f', {split}'}; {end}"), width)
    label = LABELS.get(table.line, step_words)
    told = [*rows, *(gap._asdict() for gap in gaps)]
    lines = {row[table.line]: printable(label(row)) for row in sorted(told, key=lambda row: row[table.line])}
    unread = {(gap.split, gap.step_first) for gap in gaps}
    columns, beginning = _columns(table, rows), max(map(width_of, lines.values()), default=0)
    together = min(max((width - beginning - 2) // NARROWEST, 1), len(columns) or 1)
    room = (width - beginning - 2) // together - 2
    for start in range(0, len(columns), together):
        shown = columns[start : start + together]
        heads = (cell(column.title, room) for column in shown)
        yield cut("  ".join([" " * (beginning + 2), *heads]).rstrip(), width)
        for key, text in lines.items():
            cells = (_cell(column, key, room, (column.split, key) in unread) for column in shown)
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
        for row in known:
            title = ", ".join(filter(None, (called, *(_named(row, name) for name in table.series))))
            scale = min(numbers), table.top or max(numbers)
            column = columns.setdefault(title, Column(title, row.get("split"), {}, *scale))
            column.values[row[table.line]] = row[value]
    return list(columns.values())


def _named(row: Row, name: str) -> str:
    """Return a value that a column stands for, as it is called."""
    if name == "step_first":
        return step_words(row)
    return reward_words(row[name]) if name == "name" else str(row[name] or "no split")


def _cell(column: Column, key: Any, room: int, is_unread: bool) -> str:
    if (value := column.values.get(key)) is None:
        return cell(NOT_READ if is_unread else None, room)
    span = column.high - column.low
    eighths = round((room - NUMBER - 1) * 8 * min(max((value - column.low) / span, 0.0), 1.0)) if span else 0
    bar = "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
    return f"{_number(value):<{NUMBER}} {bar:{room - NUMBER - 1}}"


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.1e}"


def tab_separated(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the rows of a chart as lines of values between tabs, the names of the columns first."""
    yield "\t".join(rows[0])
    for row in rows:
        yield "\t".join("" if value is None else " ".join(printable(str(value)).split()) for value in row.values())
