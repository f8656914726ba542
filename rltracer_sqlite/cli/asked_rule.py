"""The success rule that an indexing was asked for: a run takes it where it scores something, and else keeps its own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from shlex import quote

from ..index.database import open_index
from ..index.runs import set_default_success, set_success
from ..passrates import SuccessRule
from ..unscored import meant_instead, scores_nothing


class AskedRule:
    """Sets the rule of a run that is about to be read; `settle` says whether it could stay.

    It is not set yet where it scores none of the trajectories that are there already: what is read now decides, and a
    run whose reading is stopped has the rule that it had. `database` is what a person calls the index: where it is
    rebuilt the rule that the run has is in there.
    """

    def __init__(self, connection: sqlite3.Connection, run_id: int, rule: tuple[str, float], database: Path) -> None:
        self.connection, self.run_id, self.rule, self.database = connection, run_id, SuccessRule(*rule), database
        self.name, root = connection.execute("select name, root from runs where id = ?", (run_id,)).fetchone()
        self.own = _chosen(database, root)
        self.is_set = not (self._has_trajectories() and self._why_not())
        if self.is_set:
            self._set(self.rule)

    def settle(self) -> str | None:
        """Return None where the run that was read has the rule; else why it has its own, and what sets another.

        A run without a trajectory has it: there is nothing yet that it could score.
        """
        why_not = self._why_not() if self._has_trajectories() else None
        if why_not is None:
            if not self.is_set:
                self._set(self.rule)
            return None
        if self.is_set or self.own == self.rule:  # an indexing that was killed has left it
            self._set(None if self.own == self.rule else self.own)
        return f"{why_not} The rule stays {self._now()}.\n{self._change()}"

    def _has_trajectories(self) -> bool:
        sql = "select exists (select 1 from trajectories where run_id = ?)"
        return bool(self.connection.execute(sql, (self.run_id,)).fetchone()[0])

    def _why_not(self) -> str | None:
        return scores_nothing(self.connection, [self.run_id], self.rule)

    def _set(self, rule: SuccessRule | None) -> None:
        """Set a rule; None: the default."""
        if rule is None:
            set_default_success(self.connection, self.run_id)
        else:
            set_success(self.connection, self.run_id, rule.path, rule.threshold)

    def _now(self) -> SuccessRule:
        sql = "select success_path, success_threshold from runs where id = ?"
        return SuccessRule(*self.connection.execute(sql, (self.run_id,)).fetchone())

    def _change(self) -> str:
        """Return the command that sets the rule that was meant, where a number is spelt alike, or any other."""
        near = meant_instead(self.connection, [self.run_id], self.rule.path)
        meant = "PATH >= NUMBER" if near is None else str(SuccessRule(near, self.rule.threshold))
        where = f"{quote(str(self.database))} {quote(self.name)}"
        return (
            f"Set {'another' if near is None else 'this one'} with:\n  rltracer success {where} --rule {quote(meant)}"
        )


def _chosen(database: Path, root: str) -> SuccessRule | None:
    """Return the rule that a person gave the run at `root`; None where it has the default, or is new."""
    if not database.exists():
        return None
    with closing(open_index(database)) as connection:
        found = connection.execute(
            "select success_path, success_threshold from runs where root = ? and success_chosen", (root,)
        ).fetchone()
    return SuccessRule(*found) if found else None
