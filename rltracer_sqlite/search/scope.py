"""Which trajectories are searched: of a run, a range of steps, a split, an environment, an outcome."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from ..arguments import shown, text
from ..index.contents import lacking
from ..index.queries import runs
from ..outcomes import NAMED_BEFORE
from ..unrecorded import chosen

OUTCOMES = {"passed": "success = 1", "failed": "success = 0", "unscored": "success is null"}
CONDITIONS = {
    "run_id": "run_id = :run_id",
    "step_start": "step >= :step_start",
    "step_end": "step <= :step_end",
    "split": chosen("split", "split"),
    "env": chosen("env", "env"),
}


@dataclass(frozen=True)
class SearchScope:
    """Which trajectories are searched; None is no limit. A split or an environment
    of NOT_RECORDED is that of which none is recorded. `outcome` is one of OUTCOMES, by the run's success rule.

    Raises TypeError and ValueError for what cannot be meant.
    """

    run_id: int | None = None
    step_start: int | None = None
    step_end: int | None = None
    split: str | None = None
    env: str | None = None
    outcome: str | None = None
    is_without_step: bool = False  # only what has no step

    def __post_init__(self) -> None:
        for name in ("split", "env", "outcome"):
            if (value := getattr(self, name)) is not None:
                text(name, value)
        if self.outcome is not None:
            object.__setattr__(self, "outcome", NAMED_BEFORE.get(self.outcome, self.outcome))
        if self.outcome is not None and self.outcome not in OUTCOMES:
            raise ValueError(f"No outcome is called {shown(self.outcome)}; there are {', '.join(OUTCOMES)}.")

    def where(self) -> tuple[str, dict[str, Any]]:
        """Return the condition on a row of `trajectories` as SQL, and its parameters."""
        given = {name: getattr(self, name) for name in CONDITIONS if getattr(self, name) is not None}
        conditions = [CONDITIONS[name] for name in given]
        if self.outcome is not None:
            conditions.append(OUTCOMES[self.outcome])
        if self.is_without_step:
            conditions.append("step is null")
        return " and ".join(conditions) or "1", given


def refuse_empty(connection: sqlite3.Connection, scope: SearchScope) -> None:
    """Raise ValueError where no run has what is to be searched: an empty list would say that none of it is found."""
    asked = {"split": scope.split, "env": scope.env, "first": scope.step_start, "last": scope.step_end}
    chosen = [run.id for run in runs(connection)] if scope.run_id is None else [scope.run_id]
    missing, sentence = lacking(connection, chosen, **asked)
    if sentence and len(missing) == len(chosen) and any(value is not None for value in asked.values()):
        raise ValueError(sentence)
