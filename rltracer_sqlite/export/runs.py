"""The runs that an export takes its trajectories from: a run's folder, or a run of an existing index."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from ..arguments import as_integer, file_path, is_text, shown
from ..index import queries
from ..index.database import open_index
from ..index.named import name_or_number, named_runs, which_run
from ..on_demand import brought_up_to_date, cached_index
from ..passrates import window_steps
from ..reprs import given
from ..reward_parts import RewardParts, reward_parts, rule_in_words
from ..roots import Roots
from ..sources import source_for
from ..sources.base import Source
from ..sources.places import Root, is_database, place, relist
from .errors import ExportError

SPLITS = ("train", "eval")
Progress = Callable[[str, int, int], None]  # what is being done, how much of it is done, how much there is


@dataclass(frozen=True)
class TableRows:
    """A selection that somebody made already: rows of `trajectories` or of `prompt_groups`, by their ids."""

    table: str
    ids: Sequence[int]


@dataclass(frozen=True)
class TraceRunSpec:
    """One run, or all runs of an index, with an inclusive range of steps and a split.

    `path` is a run's folder or URL, which is indexed into the user's cache folder first, the asked steps only; or an
    index file, with `run` for the name or the id of one of its runs; without it all of them are meant. No
    `step_start` means the first step there is, 0 included. `split` None takes every split; a trajectory of which no
    split is known counts as train. `name` takes the place of the name of the run, which then has to be one.
    `rl_data_path` is the JSONL file whose line `task.data.idx` (from 0) holds the prompt. `ids` are the
    only trajectories to take, by their ids in the index or their recorded ones; every other condition still holds. Ids
    of none of the runs are refused when the export selects. `index_name` is what a command in a sentence calls the
    index in place of its path, which may be nobody's business. Raises ExportError.
    """

    path: str | os.PathLike[str] | Root
    step_start: int | None = None
    step_end: int | None = None
    split: str | None = "train"
    name: str | None = None
    rl_data_path: str | os.PathLike[str] | None = None
    run: str | int | None = None
    only: TableRows | None = field(default=None, repr=False)
    roots: Roots | None = field(default=None, repr=False, compare=False)
    ids: Iterable[int | str] | None = field(default=None, repr=False)
    index_name: str | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", place(self.path))
        if self.rl_data_path is not None:
            object.__setattr__(self, "rl_data_path", file_path("rl_data_path", self.rl_data_path, ExportError))
        for name in ("step_start", "step_end"):
            if (value := getattr(self, name)) is None:
                continue
            if (step := as_integer(value)) is None or step < 0:
                raise ExportError(f"{name} is {shown(value)}: steps are whole numbers, counted from 0.")
            object.__setattr__(self, name, step)
        if self.step_end is not None and self.step_end < (self.step_start or 0):
            raise ExportError(f"The steps {self.step_start or 0} to {self.step_end} end before they begin.")
        if self.split is not None and self.split not in SPLITS:
            raise ExportError(f"split is {shown(self.split)}: it is train, eval, or None for every split.")
        if self.name is not None and not is_text(self.name):
            raise ExportError(f"name is {shown(self.name)}: it is text.")
        if isinstance(self.ids, (str, bytes)) or not isinstance(self.ids, (Iterable, type(None))):
            raise ExportError(f"ids is {shown(self.ids)}: it is a list of the ids of trajectories.")
        if isinstance(self.ids, (list, set, frozenset, Iterator)):  # what else can be asked again stays as it is
            object.__setattr__(self, "ids", tuple(self.ids))
        object.__setattr__(self, "run", name_or_number(self.run))

    __repr__ = given

    @classmethod
    def from_index(
        cls,
        index: str | os.PathLike[str],
        run: str | int | None = None,
        *,
        step_start: int | None = None,
        step_end: int | None = None,
        split: str | None = "train",
        name: str | None = None,
        rl_data_path: str | os.PathLike[str] | None = None,
        only: TableRows | None = None,
        roots: Roots | None = None,
        ids: Iterable[int | str] | None = None,
        index_name: str | None = None,
    ) -> TraceRunSpec:
        """Return a run of an existing index, by name or id, or all of its runs; nothing is scanned again."""
        return cls(index, step_start, step_end, split, name, rl_data_path, run, only, roots, ids, index_name)


@dataclass(frozen=True)
class OpenRun:
    """A run as the index knows it, with what was asked of it."""

    number: int  # its place among the runs of the export
    spec: TraceRunSpec
    index: Path
    known: queries.Run  # as the index keeps it
    roots: Roots
    step_first: int | None  # the window's origin
    step_last: int | None
    parts: RewardParts | None = None  # the rewards that its success rule is on, where these are several

    @property
    def id(self) -> int:
        """Its number in the index."""
        return self.known.id

    @property
    def name(self) -> str:
        """What it is called in rows and in the summary."""
        return self.spec.name or self.known.name

    @property
    def success(self) -> str:
        """Its success rule as it is written."""
        return self.known.success

    @property
    def success_in_words(self) -> str:
        """Its success rule, and which rewards that is on where these are several."""
        return rule_in_words(self.success, self.parts)

    @cached_property
    def source(self) -> Source:
        """The source that reads the run's records. Raises SourceError where it is not installed."""
        from ..loading import run_source  # a dry run reads no record, and starts sooner without

        return run_source(self.known, self.roots)

    def root(self) -> Root:
        """Return the folder of the run. Raises RootNotAllowed where it may not be read here."""
        return self.roots.check(self.known.root)

    def window_bounds(self, window: int | None, size: int | None) -> tuple[int | None, int | None]:
        """Return the first and the last step of a window, within the asked range."""
        first, last = window_steps(window, self.step_first, size, self.spec.step_end)
        return first, self.step_last if size is None and first is not None else last


def open_runs(specs: Sequence[TraceRunSpec], progress: Progress | None = None) -> list[OpenRun]:
    """Return the runs, indexing folders first. Raises SourceError, IndexFileError or ExportError."""
    each = [one for spec in specs for one in _meant(spec)]
    return [_open(number, spec, progress) for number, spec in enumerate(each)]


def every_run(spec: TraceRunSpec) -> list[TraceRunSpec]:
    """Return a spec for each run of an index of which none is named, and any other spec as it is."""
    if spec.run is not None or not isinstance(spec.path, Path) or not is_database(spec.path):
        return [spec]
    return [replace(spec, run=run.name) for run in runs_of(spec.path)]


def _meant(spec: TraceRunSpec) -> list[TraceRunSpec]:
    # A name and a selection of rows are those of one run.
    found = [spec] if spec.name is not None or spec.only is not None else every_run(spec)
    return found or [spec]


def runs_of(index: Path) -> list[queries.Run]:
    """Return the runs of an index file."""
    with closing(open_index(index)) as connection:
        return queries.runs(connection)


def _open(number: int, spec: TraceRunSpec, progress: Progress | None) -> OpenRun:
    path, parts = place(spec.path), None
    if isinstance(path, Path) and (spec.run is not None or is_database(path)):
        index, wanted, roots = path, spec.run, spec.roots or Roots.for_database(path)
    else:
        index, wanted = _index_folder(spec, path, progress)
        roots = spec.roots or Roots([path])
    with closing(open_index(index)) as connection:
        run = _choose(queries.runs(connection), wanted, index)
        ends = "select min(step), max(step) from prompt_groups where run_id = ?"
        first, last = connection.execute(ends, (run.id,)).fetchone()
        with suppress(sqlite3.DatabaseError):  # what is wrong with an index is told when its trajectories are chosen
            parts = reward_parts(connection, run.id, run.success_path)
    first = first if spec.step_start is None else spec.step_start
    last = last if spec.step_end is None else spec.step_end
    return OpenRun(number, spec, index, run, roots, first, last, parts)


def _choose(known: list[queries.Run], wanted: str | int | None, index: Path) -> queries.Run:
    chosen = named_runs(known, wanted)
    if len(chosen) != 1:
        how = "Give one with TraceRunSpec(path, run=NAME)." if wanted is None else ""
        raise ExportError(which_run(known, wanted, index, how))
    return chosen[0]


def _index_folder(spec: TraceRunSpec, root: Root, progress: Progress | None) -> tuple[Path, int]:
    """Bring the asked steps of a folder up to date in the user's cache; return the index and the run's id."""
    relist(root)
    index, told = cached_index(root), None if progress is None else partial(progress, "Indexing")
    asked = partial(_is_asked, spec)
    with brought_up_to_date(index, source_for(root), root, "reading a run for an export", asked, told) as (_, done):
        return index, done.run_id


def _is_asked(spec: TraceRunSpec, step: int | None) -> bool:
    # A file that does not tell its step has to be read for it.
    if step is None:
        return True
    return (spec.step_start or 0) <= step and (spec.step_end is None or step <= spec.step_end)
