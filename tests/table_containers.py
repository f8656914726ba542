"""The same rows in each container of a table, and the mapping that reads them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from rltracer_sqlite.sources.table import TableSource, mapping_source_from_text
from tests.table_rows import write_lines, write_parquet

MAPPING = """
name = "mine"
{layout}
[files]
table = "rows"
[content]
kind = "messages"
prompt = "q"
completion = "a"
[columns]
reward = "r"
step = "n"
"""
ROWS = [{"q": f"question {n}", "a": f"answer {n} 😀\u2028", "r": n / 4, "n": n, "note": "x"} for n in range(6)]


def mine(layout: str = "") -> TableSource:
    return mapping_source_from_text(MAPPING.format(layout=layout))


def as_lines(root: Path) -> None:
    write_lines(root / "rows.jsonl", *ROWS)


def as_array(root: Path) -> None:
    (root / "rows.json").write_text(json.dumps(ROWS, indent=2, ensure_ascii=False), encoding="utf-8")


def as_columns(root: Path) -> None:
    lines = [{name: [row[name] for row in part] for name in ROWS[0]} for part in (ROWS[:4], ROWS[4:])]
    write_lines(root / "rows.jsonl", *lines)


def as_singletons(root: Path) -> None:
    write_lines(root / "rows.jsonl", *({**{name: [value] for name, value in row.items()}, "idx": 3} for row in ROWS))


def as_parquet(root: Path) -> None:
    pytest.importorskip("pyarrow")
    write_parquet(root / "rows.parquet", ROWS)


def as_sqlite(root: Path) -> None:
    connection = sqlite3.connect(root / "rows.db")
    connection.execute("create table rows (q text, a blob, r real, n integer, note text)")
    connection.executemany(
        "insert into rows values (?, ?, ?, ?, ?)",
        [(q, a.encode(), r, n, x) for q, a, r, n, x in map(dict.values, ROWS)],
    )
    connection.commit()
    connection.close()


WRITERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "lines": (as_lines, ""),
    "array": (as_array, ""),
    "columns": (as_columns, 'layout = "columns"'),
    "singletons": (as_singletons, 'layout = "singletons"'),
    "parquet": (as_parquet, ""),
    "sqlite": (as_sqlite, ""),
}
