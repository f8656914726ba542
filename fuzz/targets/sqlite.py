"""Tables in SQLite databases that others wrote."""

from __future__ import annotations

import sqlite3
from functools import cache

from rltracer_sqlite.sources.base import Shard
from rltracer_sqlite.sources.table import mapping_source_from_text

from ..invariants import entries, scanned
from ..scratch import scratch
from ..target import Target
from .tables import check_load

MAPPING = """
name = "own"
[files]
paths = ["*.db"]
table = "rollouts"
[content]
kind = "text"
prompt = "prompt"
completion = "completion"
[columns]
reward = "reward"
id = "name"
"""


def check(data: bytes) -> None:
    """A database is read or refused in a sentence, and what was found in it loads as it was counted."""
    root, shard = scratch("sqlite"), Shard("a.db", "a.db", "sqlite")
    (root / "a.db").write_bytes(data)
    source = mapping_source_from_text(MAPPING)
    for entry in entries(scanned(source, root, shard))[:100]:
        check_load(source, root, shard, entry)
    assert [path.name for path in root.iterdir()] == ["a.db"]


@cache
def seeds() -> list[bytes]:
    """Return small databases of small pages: a table, a table without rowids, a view, a table with long cells."""
    statements = [
        "create table rollouts (name text, prompt text, completion text, reward real)",
        "create table rollouts (name text primary key, prompt, completion, reward) without rowid",
        "create view rollouts as select 'a' as name, 'q' as prompt, 'a' as completion, 1 as reward",
        "create table rollouts (rowid text, name, prompt, completion, reward, x generated always as (reward * 2))",
        'create table rollouts (name, prompt, completion, reward, "rollouts""; --" any)',
    ]
    found = []
    for number, statement in enumerate(statements):
        file = scratch("sqlite-seeds") / f"{number}.db"
        connection = sqlite3.connect(file)
        connection.execute("pragma page_size = 512")
        connection.execute(statement)
        if "view" not in statement:
            rows = [
                ("a", "q", "x" * 700, 1.0),
                ("b", b"\xff\0", None, "0.5"),
                (None, "[]", '[{"role": "user"}]', 2**62),
            ]
            for row in rows[: 2 if "without" in statement else 3]:
                connection.execute("insert into rollouts (name, prompt, completion, reward) values (?, ?, ?, ?)", row)
        connection.commit()
        connection.close()
        found.append(file.read_bytes())
    return found


TARGETS = {"sqlite": Target("sqlite", "tables of a SQLite database that others wrote", check, seeds)}
