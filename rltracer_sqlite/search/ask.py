"""Searching an index for words outside of the browser: which trajectories say them, and where."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from ..index.database import IndexFileError, open_index
from ..index.queries import named_runs, run_names, runs, trajectory_row
from .found import found_rows
from .hits import Hit, read_hits
from .query import full_text_query
from .tables import DIGESTS, has_text

if TYPE_CHECKING:
    from ..model import Trajectory
    from ..roots import Roots

OUTCOMES = {"correct": "success = 1", "incorrect": "success = 0", "unscored": "success is null"}
CONDITIONS = {
    "run_id": "run_id = :run_id",
    "step_start": "step >= :step_start",
    "step_end": "step <= :step_end",
    "split": "split = :split",
    "env": "env = :env",
}


@dataclass(frozen=True)
class Among:
    """Which trajectories are searched; None is no limit. `outcome` is one of OUTCOMES, by the run's success rule."""

    run_id: int | None = None
    step_start: int | None = None
    step_end: int | None = None
    split: str | None = None
    env: str | None = None
    outcome: str | None = None

    def where(self) -> tuple[str, dict[str, Any]]:
        """Return the condition on a row of `trajectories` as SQL, and its parameters. Raises ValueError."""
        given = {name: getattr(self, name) for name in CONDITIONS if getattr(self, name) is not None}
        conditions = [CONDITIONS[name] for name in given]
        if self.outcome is not None:
            if self.outcome not in OUTCOMES:
                raise ValueError(f"No outcome is called {self.outcome!r}; there are {', '.join(OUTCOMES)}.")
            conditions.append(OUTCOMES[self.outcome])
        return " and ".join(conditions) or "1", given


@dataclass(frozen=True)
class Match:
    """A trajectory whose messages say what was searched for, and where the most of it stands."""

    id: int
    uid: str
    run: str
    step: int | None
    split: str | None
    env: str | None
    success: bool | None  # None: unscored
    reward: float | None
    matches: int  # in the whole trajectory
    branch: int | None  # from 1; messages on several branches are told of the last of them
    message: int | None  # from 0, in the branch: `load().branches[branch - 1][message]`
    role: str | None
    snippet: str | None  # a stretch of that message; None where `problem` says why there is none
    marks: Sequence[tuple[int, int]]  # what matches in the snippet, as (start, end)
    problem: str | None
    index: Path = field(repr=False)

    def load(self) -> Trajectory:
        """Decode the trajectory, reading its record's bytes only. Raises LocatorError."""
        from ..adapter import load_trajectory
        from ..roots import Roots

        with closing(open_index(self.index)) as connection:
            return load_trajectory(connection, self.id, Roots.for_database(self.index))


def search_text(
    index: str | Path,
    words: str,
    *,
    run: str | int | None = None,
    step: int | None = None,
    step_start: int | None = None,
    step_end: int | None = None,
    split: str | None = None,
    env: str | None = None,
    outcome: str | None = None,
    limit: int | None = 20,
) -> list[Match]:
    """Return the trajectories of an index whose prompts, messages or tool calls say `words`, the newest first.

    `words` are those of the search page: all of them in any form and order, `"a phrase"`, `beginning*`, `OR`, `NOT`,
    parentheses, `NEAR(one two, 5)`. The other arguments narrow down what is searched: a run by its name or number, one
    step or a range of them with both its ends, and the outcome "correct", "incorrect" or "unscored". With `limit=None`
    all are returned. Each record that is found is read for its snippet; one that cannot be read has a `problem`.

    Raises QueryError for words that cannot be meant, WhichRunError for a run that the index does not hold, ValueError
    for another outcome, and IndexFileError for what is no index or has no full text yet, which `rltracer fts` makes.
    """
    from ..roots import Roots

    query, path = full_text_query(words), Path(index)
    with closing(open_searchable(path)) as connection:
        run_id = None if run is None else _run_id(connection, path, run)
        first, last = (step_start, step_end) if step is None else (step, step)
        found = find(
            connection, Roots.for_database(path), query, Among(run_id, first, last, split, env, outcome), limit
        )
        return [_match(path, row, hit) for row, hit in found]


def open_searchable(path: Path) -> sqlite3.Connection:
    """Open an index for reading. Raises IndexFileError, also where it has no full text."""
    connection = open_index(path)
    if not has_text(connection):
        connection.close()
        raise IndexFileError(f"{path} has no full text yet. Make it with: rltracer fts {quote(str(path))}")
    return connection


def find(
    connection: sqlite3.Connection, roots: Roots, query: str, among: Among, limit: int | None
) -> Iterator[tuple[dict[str, Any], Hit]]:
    """Yield the row of each trajectory that a FTS5 query finds, the newest first, and what it matches in its record."""
    where, parameters = among.where()
    # Only the ids are held, and no question stays open, which would keep a writer waiting for whoever reads this.
    sql = f"select id from ({found_rows(where, -1 if limit is None else limit)})"
    for (number,) in connection.execute(sql, {**parameters, "match": query}).fetchall():
        if (row := trajectory_row(connection, number)) is not None:
            yield row, read_hits(connection, roots, [row], query)[0]


def count_searched(connection: sqlite3.Connection, among: Among) -> int:
    """Return how many trajectories can be found among those that are asked for."""
    where, parameters = among.where()
    sql = f"select count(*) from trajectories where id in (select trajectory_id from {DIGESTS}) and {where}"
    return int(connection.execute(sql, parameters).fetchone()[0])


def _run_id(connection: sqlite3.Connection, path: Path, run: str | int) -> int:
    from ..adapter import WhichRunError

    known = runs(connection)
    if not (chosen := named_runs(known, run)):
        raise WhichRunError(f"{path} has no run {str(run)!r}. It holds: {run_names(known)}.")
    return chosen[0].id


def _match(index: Path, row: dict[str, Any], hit: Hit) -> Match:
    names = ("id", "uid", "run", "step", "split", "env", "reward")
    place = hit.place
    return Match(
        **{name: row[name] for name in names},
        success=None if row["success"] is None else bool(row["success"]),
        matches=hit.matches,
        branch=place.branch if place else None,
        message=place.message if place else None,
        role=place.role if place else None,
        snippet=None if hit.problem else hit.text,
        marks=hit.marks,
        problem=hit.error or hit.problem,
        index=index,
    )
