"""Searching an index for words in Python: the matches, each with where most of the words stand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..amounts import plural
from ..arguments import file_path, step_number, whole_number
from ..index.database import open_index
from ..reprs import short
from ..runs import chosen_run
from .found import count_found, find, searched
from .hits import Hit
from .query import full_text_query
from .scope import SearchScope, refuse_empty
from .tables import open_searchable

if TYPE_CHECKING:
    from ..trajectory import Trajectory


@dataclass(frozen=True)
class Match:
    """A trajectory whose messages say what was searched for, and where most of the words stand.

    `id`, `uid`, `run`, `step`, `split`, `env`, `success` and `reward` are those of the trajectory; `success` is
    None where it is unscored. `matches` counts in the whole trajectory, of words that are no phrase each by itself.
    `snippet` is a stretch of a message around the place where most of the words stand, closest to each other: of
    the message with the number `message` on the branch with the number `branch`, both counted from 1 as on the
    pages and in `rltracer inspect`: `load().branches[branch - 1][message - 1]`. Its role is `role`, and `marks` are
    the (start, end) of what matches in the snippet. Where the record cannot be read, `problem` says why and the
    place is None.
    """

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
    message: int | None  # from 1, in the branch: `load().branches[branch - 1][message - 1]`
    role: str | None
    snippet: str | None  # a stretch of that message; None where `problem` says why there is none
    marks: Sequence[tuple[int, int]]  # what matches in the snippet, as (start, end)
    problem: str | None
    index: Path = field(repr=False)

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step {self.step}"
        return f"<Match {self.id} of {short(self.run)}{step}: {short(self.problem or self.snippet, 80)}>"

    def load(self) -> Trajectory:
        """Return the decoded trajectory, reading its record's bytes only.

        Raises LocatorError where the record is gone, has changed, or lies in a folder that may not be read.
        """
        from ..loading import load_trajectory
        from ..roots import Roots

        with closing(open_index(self.index)) as connection:
            return load_trajectory(connection, self.id, Roots.for_database(self.index))


class Matches(list[Match]):
    """The list that `search_text` returns: the newest of the trajectories that were found, up to the limit.

    `total` is how many were found, listed or not. Of the trajectories that were asked for, by run, steps, split,
    environment and outcome, `unsearched` could not be found, because they came after the full text was brought up to
    date, or because their records could not be read then; `without_text` have no text, such as token ids without a
    tokenizer; and the files of `gone` have vanished or cannot be read any more, so that these cannot be opened, found
    or not.
    """

    def __init__(
        self,
        matches: Iterable[Match] = (),
        total: int = 0,
        unsearched: int = 0,
        without_text: int = 0,
        gone: int = 0,
    ) -> None:
        super().__init__(matches)
        self.total = max(total, len(self))
        self.unsearched, self.without_text, self.gone = unsearched, without_text, gone

    def __repr__(self) -> str:
        more = "; limit=None lists all" if self.total > len(self) else ""
        later = f"; {plural(self.unsearched, 'trajectory')} not searched" if self.unsearched else ""
        later += f"; {self.without_text:,} without text" if self.without_text else ""
        later += f"; {self.gone:,} whose file cannot be read any more" if self.gone else ""
        return f"<Matches: {len(self):,} of {plural(self.total, 'trajectory')}{more}{later}>"


def search_text(
    index: str | os.PathLike[str],
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
) -> Matches:
    """Return the trajectories of an index whose prompts, messages or tool calls say `words`, the newest first.

    At most `limit` are listed, and all with `limit=None`; `total` of the list says how many there are.

    `words` are those of the search page: all of them in any form and order, `"a phrase"`, `beginning*`, `OR`, `NOT`,
    parentheses, `NEAR(one two, 5)`; each character of a script that is written without spaces or of Korean is a word,
    so that any part of it is found. The other arguments narrow down what is searched: a run by its name or number, one
    step or a range of them with both its ends, and the outcome "passed", "failed" or "unscored". Each record
    that is listed is read for its snippet; one that cannot be read has a `problem`.

    Raises QueryError for words that cannot be meant, WhichRunError for a run that the index does not hold, ValueError
    for another outcome, steps that end before they begin, and a split, an environment or steps that none of the runs
    has, with what they have instead, and IndexFileError for what is no index or has no full text yet.
    """
    from ..roots import Roots

    query, path = full_text_query(words), file_path("index", index)
    most = None if limit is None else whole_number("limit", limit)
    scope = SearchScope(None, *_range(step, step_start, step_end), split, env, outcome)
    with closing(open_searchable(path)) as connection:
        if run is not None:
            scope = replace(scope, run_id=chosen_run(path, run).id)
        refuse_empty(connection, scope)
        found = [_match(path, *one) for one in find(connection, Roots.for_database(path), query, scope, most)]
        total = count_found(connection, query, scope) if len(found) == most else len(found)
        coverage = searched(connection, scope)
        gone = coverage.gone + coverage.unopened
        return Matches(found, total, coverage.later, coverage.token_ids + coverage.empty, gone)


def _range(step: int | None, first: int | None, last: int | None) -> tuple[int | None, int | None]:
    """Return the range of steps that is asked for. Raises ValueError."""
    step, first, last = map(step_number, (step, first, last))
    if step is not None and (first is not None or last is not None):
        raise ValueError("step and step_start or step_end ask for different things: give one of them.")
    if first is not None and last is not None and last < first:
        raise ValueError(f"The steps {first} to {last} end before they begin.")
    return (first, last) if step is None else (step, step)


def _match(index: Path, row: dict[str, Any], hit: Hit) -> Match:
    names = ("id", "uid", "run", "step", "split", "env", "reward")
    place = hit.place
    return Match(
        **{name: row[name] for name in names},
        success=None if row["success"] is None else bool(row["success"]),
        matches=hit.matches,
        branch=place.branch if place else None,
        message=place.message + 1 if place else None,
        role=place.role if place else None,
        snippet=None if hit.problem else hit.text,
        marks=hit.marks,
        problem=hit.error or hit.problem,
        index=index,
    )
