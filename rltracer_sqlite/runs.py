"""The runs of an index, for whoever has to choose one of them."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from .amounts import plural, ranges
from .arguments import file_path
from .index import queries
from .index.database import open_index
from .index.lists import run_facts
from .index.named import named_runs, which_run
from .reprs import short
from .sources.base import SourceError


class WhichRunError(SourceError):
    """An index of several runs of which none was named, or not one that it holds; the sentence names those it holds."""


@dataclass(frozen=True)
class IndexedRun:
    """A run of an index, and what is known of it over all its steps.

    What is scored and rewarded, the pass rate and the mean reward are those of `split`: train, where the run has any of
    it, as on the overview page. Trajectories and prompt groups are of all splits.

    Its `name` or its `id` is the `run` that `RLTracer`, `open_run`, `search_text` and `TraceRunSpec` take.
    """

    id: int
    name: str
    root: str  # its folder or URL
    source: str  # the system whose files it has
    split: str | None  # the split that stands for the run; None: none is recorded
    steps: list[int]
    trajectories: int
    prompt_groups: int
    split_trajectories: int  # trajectories of `split`, scored or not
    scored: int  # trajectories with a value that decides success
    successes: int
    pass_rate: float | None  # successes / scored
    rewarded: int  # trajectories that have a reward
    reward_mean: float | None  # the mean of theirs
    without_step: int = 0  # trajectories of all splits that have no step

    def __repr__(self) -> str:
        steps = f", steps {ranges(self.steps)}" if self.steps else ""
        of_split = f" of {short(self.split)}" if self.split else ""
        rate = "" if self.pass_rate is None else f", pass rate {self.pass_rate:.3f}{of_split}"
        rate += f" over {self.scored:,} scored" if rate and self.scored != self.trajectories else ""
        return f"<IndexedRun {self.id} {short(self.name)}: {plural(self.trajectories, 'trajectory')}{steps}{rate}>"


def list_runs(index: str | os.PathLike[str]) -> list[IndexedRun]:
    """Return the runs of an index in the order of their ids. Raises IndexFileError for what is no index."""
    with closing(open_index(file_path("index", index))) as connection:
        facts = run_facts(connection)
        roots = {run.id: run.root for run in queries.runs(connection)}
    return [IndexedRun(id := one.pop("run_id"), one.pop("run"), roots.get(id, ""), **one) for one in facts]


def chosen_run(index: Path, run: str | int | None) -> queries.Run:
    """Return the run of an index that a name, its beginning or a number means, or its only run.

    Raises WhichRunError and IndexFileError.
    """
    with closing(open_index(index)) as connection:
        known = queries.runs(connection)
    if len(chosen := named_runs(known, run)) == 1:
        return chosen[0]
    raise WhichRunError(which_run(known, run, index, "Give one as run=NAME." if run is None else ""))
