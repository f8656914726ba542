"""The success rule of a run: the reward, or the final label as soon as a record has one; and what a rule scores."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from ..amounts import exactly
from ..sources.base import Entry
from .columns import BUILT_IN, Columns, quoted, resolve_path
from .statistics import apply_success

DEFAULT_SUCCESS = ("reward", 1.0)
LABEL_SUCCESS = ("metrics.correct_final_label", 1.0)


class RunRule:
    """The rule of one run; every method runs inside the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection, run_id: int) -> None:
        self.connection, self.run_id = connection, run_id
        self.path, self.threshold, chosen = connection.execute(
            "select success_path, success_threshold, success_chosen from runs where id = ?", (run_id,)
        ).fetchone()
        self.is_chosen = bool(chosen)  # by a person

    def success(self, entry: Entry) -> int | None:
        """Return 1 or 0 for an entry, or None where it is unscored."""
        value = entry.values.get(self.path)
        if value is None and self.path.startswith("rewards."):
            value = entry.values.get(f"{self.path}.score")
        if value is None and self.path in BUILT_IN:
            value = getattr(entry, BUILT_IN[self.path])
        return int(value >= self.threshold) if isinstance(value, (int, float)) else None

    def choose(self, entries: Iterable[Entry]) -> None:
        """Switch to the label's rule when the first record with a final label is seen, unless a person chose one."""
        if self.is_chosen or self.path != DEFAULT_SUCCESS[0]:
            return
        if any(LABEL_SUCCESS[0] in entry.values for entry in entries):
            self._set(LABEL_SUCCESS)

    def choose_without_label(self, columns: Columns) -> None:
        """Go back to the reward when no record of the run has the label any more, unless a person chose the rule."""
        column = columns.by_path.get(self.path)
        if self.is_chosen or self.path != LABEL_SUCCESS[0] or column is None:
            return
        if not _is_recorded(self.connection, self.run_id, column):
            self._set(DEFAULT_SUCCESS)

    def _set(self, rule: tuple[str, float]) -> None:
        self.connection.execute(
            "update runs set success_path = ?, success_threshold = ? where id = ?", (*rule, self.run_id)
        )
        self.path, self.threshold = rule
        apply_success(self.connection, self.run_id)


def default_rule(connection: sqlite3.Connection, run_id: int) -> tuple[str, float]:
    """Return (path, threshold) of the rule that a run has while nobody has chosen one."""
    column = resolve_path(connection, LABEL_SUCCESS[0])
    return LABEL_SUCCESS if column and _is_recorded(connection, run_id, column) else DEFAULT_SUCCESS


def _is_recorded(connection: sqlite3.Connection, run_id: int, column: str) -> bool:
    query = f"select exists (select 1 from trajectories t where run_id = ? and {quoted(column)} is not null)"
    return bool(connection.execute(query, (run_id,)).fetchone()[0])


def rule_and_splits(connection: sqlite3.Connection, run_id: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the rule of a run, and what it scores of each of its splits, train first.

    A run without a trajectory has one split, which is None.
    """
    name, path, threshold, chosen = connection.execute(
        "select name, success_path, success_threshold, success_chosen from runs where id = ?", (run_id,)
    ).fetchone()
    rows = connection.execute(
        """
        select split, total(trajectories), total(scored), total(successes) from prompt_groups where run_id = ?
        group by split order by split is not 'train', split
        """,
        (run_id,),
    ).fetchall()
    rule = {
        "run_id": run_id, "run": name, "success": f"{path} >= {exactly(threshold)}", "success_path": path,
        "success_threshold": threshold, "success_chosen": bool(chosen),
    }  # fmt: skip
    return rule, [_scored(split, *map(int, counts)) for split, *counts in rows or [(None, 0, 0, 0)]]


def _scored(split: str | None, trajectories: int, scored: int, successes: int) -> dict[str, Any]:
    rate = successes / scored if scored else None
    return {"split": split, "trajectories": trajectories, "scored": scored, "successes": successes, "pass_rate": rate}
