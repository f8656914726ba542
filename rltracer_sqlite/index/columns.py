"""The columns of `trajectories` that recorded values get, one per dotted path, made when a path is first seen."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import chain

from ..sources.base import Entry

MAX_COLUMNS = 200
MAX_NAME = 60
MAX_PATHS = 2000
LONG_TEXT = "long text"
TYPES = {"number": "real", "text": "text"}

# Paths whose value has a column of the schema's own. An entry's attribute has the column's name.
# The index lists them in `fields` from the start.
BUILT_IN = {
    "reward": "reward",
    "advantage": "advantage",
    "stop_condition": "stop_condition",
    "is_truncated": "truncated",
    "ok": "ok",
    "task.data.idx": "data_idx",
    "info.env_name": "env",
    "info.advantage": "advantage",
    "info.effective": "effective",
    "info.ship.step": "ship_step",
    "info.group_id": "group_id",
    "info.episode_id": "episode_id",
    "info.policy_version": "policy_version",
    "info.kind": "split",
}


def quoted(column: str) -> str:
    """Return a column of `trajectories t` for a query.

    Its name comes from a database: it is quoted, and qualified so that a missing column is no text.
    """
    return 't."' + column.replace('"', '""') + '"'


class Columns:
    """Which path has which column; adds what a batch of entries brings."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.by_path: dict[str, str | None] = {}
        self.kinds: dict[str, str] = {}
        for path, column, kind in connection.execute("select path, column_name, kind from fields"):
            self.by_path[path], self.kinds[path] = column, kind
        self.taken = {row[1] for row in connection.execute("pragma table_xinfo(trajectories)")}

    @property
    def dynamic(self) -> list[tuple[str, str]]:
        """Return (path, column) of the columns that were made for a path."""
        return [(path, column) for path, column in self.by_path.items() if column and path not in BUILT_IN]

    def add(self, entries: Iterable[Entry]) -> None:
        """Make sure that every path of these entries is known, and count the trajectories that have it."""
        found = Counter(chain.from_iterable(zip(e.values, map(type, e.values.values()), strict=True) for e in entries))
        counts: Counter[str] = Counter()
        for (path, recorded), count in found.items():
            if path in BUILT_IN:
                continue
            counts[path] += count
            if self.kinds.get(path) != (kind := _kind(recorded)):
                self._learn(path, kind)
        self.connection.executemany(
            "update fields set trajectories = trajectories + ? where path = ?",
            [(count, path) for path, count in counts.items()],
        )

    def recount(self) -> None:
        """Count the trajectories of every column anew, after rows were written over or removed."""
        for path, column in self.dynamic:
            self.connection.execute(
                f'update fields set trajectories = (select count("{column}") from trajectories) where path = ?', (path,)
            )

    def _learn(self, path: str, kind: str) -> None:
        """Note a kind of value that a path has not had before: make its column, or make the column fit."""
        known = self.kinds.get(path)
        if known is None:
            if len(self.kinds) >= MAX_PATHS:
                return
            self._set(path, kind, self._make_column(path, kind))
        elif known == "number" and kind == "text":
            self._set(path, kind, self._turn_to_text(self.by_path[path]))
        elif kind == LONG_TEXT and known != LONG_TEXT:
            # A column that lacks the long ones would give wrong answers.
            if (column := self.by_path[path]) is not None:
                self.connection.execute(f'alter table trajectories drop column "{column}"')
                self.taken.discard(column)
            self._set(path, kind, None)

    def _make_column(self, path: str, kind: str) -> str | None:
        if kind == LONG_TEXT or len(self.dynamic) >= MAX_COLUMNS:
            return None
        column = self._free_name(column_name(path))
        # The name holds only a–z, 0–9 and _, so it cannot end its quotes. The type matters: Datasette compares a
        # filter's text with a typed column only as people expect.
        self.connection.execute(f'alter table trajectories add column "{column}" {TYPES[kind]}')
        self.taken.add(column)
        return column

    def _turn_to_text(self, column: str | None) -> str | None:
        if column is None:
            return None
        for statement in (
            f'alter table trajectories add column "{column}__text" text',
            f'update trajectories set "{column}__text" = "{column}" where "{column}" is not null',
            f'alter table trajectories drop column "{column}"',
            f'alter table trajectories rename column "{column}__text" to "{column}"',
        ):
            self.connection.execute(statement)
        return column

    def _set(self, path: str, kind: str, column: str | None) -> None:
        self.kinds[path], self.by_path[path] = kind, column
        self.connection.execute(
            """
            insert into fields (path, column_name, kind, trajectories) values (?, ?, ?, 0)
            on conflict (path) do update set column_name = excluded.column_name, kind = excluded.kind
            """,
            (path, column, kind),
        )

    def _free_name(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}_{number}", number + 1
        return name


def uncount(connection: sqlite3.Connection, trajectory_ids: Collection[int]) -> None:
    """Take these trajectories off the numbers of those that have a path, before they are written over or removed."""
    listed = connection.execute("select path, column_name from fields where column_name is not null").fetchall()
    columns = [(path, column) for path, column in listed if path not in BUILT_IN]
    if not trajectory_ids or not columns:
        return
    counts = ", ".join(f"count({quoted(column)})" for _, column in columns)
    row = connection.execute(
        f"select {counts} from trajectories t where id in (select value from json_each(?))",
        (json.dumps(list(trajectory_ids)),),
    ).fetchone()
    connection.executemany(
        "update fields set trajectories = trajectories - ? where path = ?",
        [(count, path) for (path, _), count in zip(columns, row, strict=True) if count],
    )


def _kind(recorded: type) -> str:
    return LONG_TEXT if recorded is type(None) else "text" if issubclass(recorded, str) else "number"


def add_built_in(connection: sqlite3.Connection) -> None:
    """List the paths that have a column of the schema's own in the `fields` of a new index."""
    text = {"stop_condition", "env", "group_id", "episode_id", "split"}
    connection.executemany(
        "insert into fields (path, column_name, kind) values (?, ?, ?)",
        [(path, column, "text" if column in text else "number") for path, column in BUILT_IN.items()],
    )


def column_name(path: str) -> str:
    """Return the column name for a path: reward_<name>, metric_<name>, info_<name>; a bare name is a metric."""
    group, _, rest = path.partition(".")
    prefix = {"rewards": "reward", "metrics": "metric", "info": "info"}.get(group, "metric")
    name = rest.removesuffix(".score") if group == "rewards" else rest
    plain = re.sub(r"[^a-z0-9]+", "_", (name or group).lower()).strip("_") or "value"
    return f"{prefix}_{plain[:MAX_NAME]}"


def resolve_path(connection: sqlite3.Connection, path: str) -> str | None:
    """Return the column of `trajectories` that a dotted path names, or None where it is not indexed."""
    candidates = [path, f"{path}.score"] if path.startswith("rewards.") else [path]
    for candidate in candidates:
        found = connection.execute("select column_name from fields where path = ?", (candidate,)).fetchone()
        if found:
            return found[0]  # type: ignore[no-any-return]
    return None
