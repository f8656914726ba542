"""The names of columns: the paths inside a row, and which of them was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from .rows import Row, json_text

MOST_DEPTH, MOST_NAMES = 4, 300


def paths_of(path: str, value: Any, depth: int = 1) -> Iterator[str]:
    """Yield a column's path and those of the values inside it, in a text that is JSON as well."""
    yield path
    if isinstance(value, str) and value[:1] == "{":
        value = json_text(value)
    if isinstance(value, dict) and depth < MOST_DEPTH:
        for name, inner in value.items():
            yield from paths_of(f"{path}.{name}", inner, depth + 1)


def names_in(rows: Iterable[Row]) -> list[str]:
    """Return the paths of the columns of some rows, and of the values inside them."""
    paths = (path for row in rows for name in row.cells for path in paths_of(name, row.get(name)))
    return list(dict.fromkeys(paths))[:MOST_NAMES]


def is_inside(column: str, names: Sequence[str]) -> bool:
    """Say whether a column is one of these or a path into one of them."""
    return column in names or column.startswith(tuple(f"{name}." for name in names))


def meant(column: str, names: list[str]) -> str:
    """Return "; did you mean x?" for a column that is not there and one that is, or ""."""
    last = column.rpartition(".")[2]
    same = [name for name in names if name.rpartition(".")[2] == last]
    close = same[:1] or get_close_matches(column, names, 1)
    return f"; did you mean {close[0][:60]}?" if close else ""
