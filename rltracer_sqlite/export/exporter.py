"""The exporter: what Python, the command line and the export buttons in Datasette all use.

It selects, then reads what it has selected in the order of the files. Its rows come from a plain generator, so a file
and a browser get the same bytes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..amounts import plural
from ..arguments import file_path, instance, shown, whole_number
from ..reprs import short
from .errors import ExportError
from .lines import format_of, lines
from .preferences import ExportMode, ExportPreferences
from .runs import Progress, TraceRunSpec, open_runs
from .selection import Selection
from .shortfall import counted_reasons
from .summary import summary, to_json
from .write import refuse_name, refuse_target, replacing_all, write_rows
from .written import Written

MOST_ATTEMPTS = 1000
ROWS_LOOKED_INTO = 20  # by a preview: each costs the reading of its record, which may be far away or huge


@dataclass(frozen=True)
class ExportResult:
    """What was written.

    `selected_count` counts trajectories, in preference mode pairs; a trajectory writes a row per branch.
    `eligible_prompt_groups` counts the prompts, per run and window, that have anything to give. `row_count` counts the
    rows of the file, and `summary` is what the file at `summary_path` holds. `available_count` is that of rltracer
    0.1.0: what all filters and the quota per prompt and window leave, for unique prompts and target to choose from. It
    is not the stage "available" of the funnel, which is all trajectories of the asked steps and splits: `funnel` has
    that one, and each stage after it.
    """

    output_path: Path
    summary_path: Path
    selected_count: int
    available_count: int
    eligible_prompt_groups: int
    row_count: int
    summary: dict[str, Any] = field(repr=False)

    @property
    def distinct_row_count(self) -> int:
        """How many rows of different content the file has: rollouts of a prompt may well say the same."""
        return int(self.summary["distinct_row_count"])

    @property
    def funnel(self) -> list[FunnelStage]:
        """The stages of the selection in their order, from what was available to what was selected."""
        return [FunnelStage(**stage) for stage in self.summary["funnel"]]


class FunnelStage(NamedTuple):
    """One line of the funnel: how many trajectories are left after a stage, and how many it has dropped."""

    stage: str
    left: int
    dropped: int


class TraceDataExporter:
    """Training data out of one or more runs.

    `runs` are TraceRunSpecs, or paths of runs or indexes, one or several; an index stands for all of its runs.
    `progress` is told what is being done, how much of it is done and how much there is; what it raises ends the
    export. Every method raises ExportError for what cannot be exported, LocatorError where a file has changed since
    it was indexed (the old output then stays as it is), and SourceError or IndexFileError for a run or index that
    cannot be read.
    """

    def __init__(
        self,
        runs: TraceRunSpec | str | os.PathLike[str] | Iterable[TraceRunSpec | str | os.PathLike[str]],
        preferences: ExportPreferences | None = None,
        progress: Progress | None = None,
    ) -> None:
        several = [runs] if isinstance(runs, (str, os.PathLike, TraceRunSpec)) else runs
        if isinstance(several, bytes) or not isinstance(several, Iterable):
            raise TypeError(f"runs is {shown(runs)}: it is a list of TraceRunSpecs or paths.")
        self.run_specs = tuple(run if isinstance(run, TraceRunSpec) else TraceRunSpec(run) for run in several)
        if not self.run_specs:
            raise ExportError("An export needs at least one run.")
        self.preferences = ExportPreferences() if preferences is None else preferences
        instance("preferences", self.preferences, ExportPreferences)
        if progress is not None and not callable(progress):
            raise TypeError(f"progress is {shown(progress)}: it is a function.")
        self.progress = progress
        self._check_rl_data()

    def __repr__(self) -> str:
        named = [short(str(spec.path)) for spec in self.run_specs]
        several = f"{named[0]} and {plural(len(named) - 1, 'more run')}" if len(named) > 1 else named[0]
        return f"<TraceDataExporter of {several}: {self.preferences!r}>"

    def inspect(self) -> dict[str, Any]:
        """Return the summary of the selection without writing anything: what the file beside an export holds.

        "funnel" has its stages, "windows" the counts of each window of each run, and "runs" their success rules.
        """
        with self._selected() as selection:
            return summary(selection)

    def preview(self, rows: int) -> tuple[dict[str, Any], list[Any]]:
        """Return the summary of the selection and its first rows. The notes are those of a whole export of few rows.

        Of many rows the records of the first are read, and notes that take the others say so. A record that proves to
        be no training data is passed over: a note tells it, and the counts do not.
        """
        from .picked_rows import written_rows

        rows = whole_number("rows", rows)
        with self._selected() as selection:
            written, first = Written(is_preview=True), list[Any]()
            made = written_rows(selection, written, self.progress)
            for row in islice(made, max(rows, ROWS_LOOKED_INTO)):
                if len(first) < rows:
                    first.append(row)
            met = deepcopy(written)  # without the next row, if there is one
            met.is_beginning = next(made, None) is not None
            told = summary(selection, looked_into=met)
            if refused := counted_reasons(met.rejected):
                told["notes"].append(f"Left out when they were read for this preview: {refused}.")
            return told, first

    def write_jsonl(self, output_path: str | os.PathLike[str]) -> ExportResult:
        """Write JSONL (`.gz` and `.zst` compressed) and a summary beside it, and return the counts.

        An old file is replaced when the new one is whole. Raises ExportError for the name of another format too.
        """
        path = file_path("output_path", output_path, ExportError)
        if format_of(path) == "parquet":
            raise ExportError(f"{path} is named as Parquet: use write(), or a name that ends in .jsonl.")
        return self.write(path)

    def write(self, output_path: str | os.PathLike[str], allow_empty: bool = True) -> ExportResult:
        """Write JSONL or Parquet, as the name of the file says, and a summary beside it, and return the counts.

        Without `allow_empty`, a selection of nothing raises ExportError and leaves an old file as it is.
        """
        path = file_path("output_path", output_path, ExportError)
        refuse_name(path)
        summary_path = path.with_name(f"{path.name}.summary.json")
        with self._selected() as selection:
            for target in (path, summary_path):
                given = [name for spec in self.run_specs for name in (spec.path, spec.rl_data_path)]
                inputs = [name for name in given if isinstance(name, Path)]
                refuse_target(target, (run.known.root for run in selection.runs), inputs)
            if not selection.count() and not allow_empty:
                raise ExportError(selection.why_none())
            return self._written(selection, path, summary_path, allow_empty)

    def _written(self, selection: Selection, path: Path, summary_path: Path, allow_empty: bool) -> ExportResult:
        from .picked_rows import written_rows  # a dry run reads no record, and starts sooner without

        with replacing_all(path, summary_path) as (file, beside):
            for written in self._attempts(selection):
                file.seek(0)
                file.truncate()
                write_rows(file, written_rows(selection, written, self.progress), format_of(path))
            written.is_of_one_type = format_of(path) == "parquet"
            told = summary(selection, written)
            if not told["selected_count"] and not allow_empty:
                raise ExportError(selection.why_none())
            beside.write(to_json(told))
        return ExportResult(
            path, summary_path, told["selected_count"], told["available_count"], told["eligible_prompt_groups"],
            written.rows, told,
        )  # fmt: skip

    @contextmanager
    def prepared(self) -> Iterator[PreparedExport]:
        """Give an export whose every record has been read once, so that what follows is sure to be whole.

        That is for a browser, to which nothing can be taken back once it has been sent. Raises ExportError where there
        is nothing to write.
        """
        from .picked_rows import written_rows

        with self._selected() as selection:
            written = Written()
            for written in self._attempts(selection):
                for _ in written_rows(selection, written, self.progress, "Checking records"):
                    pass
            if not written.rows:
                raise ExportError(selection.why_none())
            yield PreparedExport(selection, summary(selection, written), self.progress)

    @contextmanager
    def _selected(self) -> Iterator[Selection]:
        with Selection(open_runs(self.run_specs, self.progress), self.preferences, self.progress) as selection:
            selection.select()
            yield selection

    def _attempts(self, selection: Selection) -> Iterator[Written]:
        """Yield once, and again with another selection for as long as a record proves to be no training data."""
        from .distinct import replace_repeats

        reasons: Counter[str] = Counter()
        for _ in range(MOST_ATTEMPTS):
            written = Written(rejected=reasons)
            if self.preferences.distinct:
                replace_repeats(selection, reasons, self.progress)
            yield written
            if not written.has_rejected:
                return
            selection.select_again()
        raise ExportError("Too many of the selected records cannot be training data; the summary of a dry run helps.")

    def _check_rl_data(self) -> None:
        if self.preferences.mode is not ExportMode.RL or self.preferences.rl_from_trace:
            return
        missing = [str(spec.path) for spec in self.run_specs if spec.rl_data_path is None]
        if missing:
            raise ExportError(
                f"RL rows are joined through task.data.idx to a data file, and {missing[0]} has none: give its "
                "rl_data_path, or take the prompts from the traces with rl_from_trace."
            )


class PreparedExport:
    """A selection that is ready to be read, which `TraceDataExporter.prepared` gives: its `summary` and its bytes."""

    def __init__(self, selection: Selection, told: dict[str, Any], progress: Progress | None) -> None:
        self.selection, self.summary, self.progress = selection, told, progress

    def chunks(self) -> Iterator[bytes]:
        """Yield the file in pieces, as JSONL."""
        from .picked_rows import written_rows

        return lines(written_rows(self.selection, Written(), self.progress))
