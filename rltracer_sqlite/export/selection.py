"""Selecting: from the runs and preferences to the picks that are written, and the funnel that led to them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..amounts import shortened
from ..index.contents import nothing_there
from .candidates import rank_candidates
from .conditions import WELL_FORMED, Condition, column_of, conditions
from .emptied import none_left, why_empty
from .errors import ExportError
from .extent import available_of, beside
from .ids import find_named, left_out
from .limits import TARGET, place_picks
from .preferences import Acceptance, ExportMode, ExportPreferences
from .record_filters import examine_records
from .runs import OpenRun, Progress
from .scope import count_accepted, find_groups
from .scratch import Scratch
from .shortfall import Shortfall, asked, counted_reasons, other_rule
from .stages import PAIRED, REJECTED
from .unknown import recorded_paths, refuse_unknown_envs, unknown_values, without_value
from .ways import Change, ways_tried

NOTHING_LEFT = "Nothing is left to write after the filters; a dry run shows which one took the last."
LONGEST_NAME = 30  # of a run, beside the id of a trajectory


class Selection:
    """What an export consists of. Close it when it has been read."""

    def __init__(
        self,
        runs: Sequence[OpenRun],
        preferences: ExportPreferences,
        progress: Progress | None = None,
        examined: Scratch | None = None,
    ) -> None:
        self.examined = examined  # has what reading the records has told
        self.runs, self.preferences, self.progress = runs, preferences, progress
        self.has_several_indexes = len({run.index for run in runs}) > 1
        self.scratch = Scratch(progress)
        self.conditions: dict[int, list[Condition]] = {}
        self.accepted: list[tuple[int, int, int, int]] = []  # of each run: available, scored, accepted, and as hard
        self.notes: list[str] = []  # sentences about what is not there, and what is instead
        self.unvalued: list[str] = []  # sentences about filters that keep what has no value, where nothing has one
        self.across: list[tuple[str, int]] = []  # stages over all runs, and how many picks are left

    def __enter__(self) -> Selection:
        return self

    def __exit__(self, *error: object) -> None:
        self.scratch.close()

    def select(self) -> None:
        """Select from every run. Raises ExportError, or LocatorError where a filter reads a record that has changed."""
        some_chosen = any(run.spec.only is not None for run in self.runs)
        some_named = any(run.spec.ids is not None for run in self.runs)
        find_named(self.scratch, self.runs)
        refuse_unknown_envs(self.scratch, self.runs, self.preferences.field_filters)
        for run in self.runs:
            with self.scratch.index_errors(run):
                find_groups(self.scratch, run, self.preferences)
                self.accepted.append(count_accepted(self.scratch, run, self.preferences))
                connection = self.scratch.attach(run)
                if not self.accepted[-1][0]:
                    self.notes += _nothing_there(connection, run)
                self.conditions[run.number] = conditions(connection, run, self.preferences, some_chosen, some_named)
        self.notes += left_out(self.scratch, self.runs, self.preferences)
        self.notes += unknown_values(self.scratch, self.runs, self.preferences.field_filters)
        if self.examined is None:
            self._examine()
        else:
            self.scratch.take_unfit(self.examined)
        self._choose()

    def select_again(self, takes_fewer: bool = False) -> None:
        """Select anew, after records that were read have proved to be no training data.

        `takes_fewer`: than the target, where it is not known yet how many there are; see `refuse_fewer`.
        """
        self._choose(takes_fewer)

    def reject(self, run: OpenRun, id: int, reason: str) -> None:
        """Note that a trajectory cannot be a row."""
        self.scratch.connection.execute(
            "insert or ignore into unfit (run, stage, id, reason) values (?, ?, ?, ?)",
            (run.number, WELL_FORMED, id, reason),
        )

    def rank(self, preferences: ExportPreferences) -> None:
        """Fill `picks` with what the quotas of some preferences allow; nothing is placed of it."""
        for run in self.runs:
            with self.scratch.index_errors(run):
                rank_candidates(self.scratch, run, preferences, self.conditions[run.number], self.progress)

    def _examine(self) -> None:
        """Read the records that are left for the filters that no index answers, and note which paths have no value."""
        known: dict[str, bool] = {}
        read: dict[str, None] = {}
        for run in self.runs:
            with self.scratch.index_errors(run):
                connection = self.scratch.attach(run)
                unread = [one for one in self.preferences.field_filters if column_of(connection, one.path) is None]
                seen = recorded_paths(self.scratch, run, self.preferences.field_filters)
                if unread:
                    found = self.conditions[run.number]
                    seen |= examine_records(self.scratch, run, self.preferences, found, unread, self.progress)
                    read |= dict.fromkeys(one.path for one in unread)
            for path, recorded in seen.items():
                known[path] = known.get(path, False) or recorded
        needed = {one.path for one in self.preferences.field_filters if not one.include_missing}
        for path in [path for path, recorded in known.items() if not recorded]:
            said = without_value(self.scratch, self.runs, path, path in read)
            if path not in needed:
                self.unvalued.append(said)
            elif path in read:  # else the condition that leaves nothing says so
                raise ExportError(said)

    def _choose(self, takes_fewer: bool = False) -> None:
        self.rank(self.preferences)
        if not self.scratch.count("picks"):
            self.across = []  # of a selection before this one
            self._refuse_none()
        with self.scratch.index_errors(self.runs[0]):
            self.across = place_picks(self.scratch, self.preferences)
        if not takes_fewer:
            self.refuse_fewer()

    def refuse_fewer(self, are_compared: bool = False) -> None:
        """Raise ExportError where less than the target is selected; `are_compared`: it is known to differ."""
        if self.count() >= (self.preferences.target_count or 0):
            return
        available = f" {self._available()}" if beside(self) else ""
        # Of more rows it is not known what they say, and so not how many of them differ.
        enough, most = ([], None) if self.preferences.distinct else ways_tried(self.preferences, self._count_with)
        told = self.funnel(), self._refused(), enough, most, self._other_rule(), are_compared
        short = Shortfall(self.preferences, self.count(), self.prompts(), *told)
        raise ExportError(f"{short}{available}", [step for step in short.funnel if step["stage"] != TARGET])

    def _other_rule(self) -> str:
        """Return the command that sets another rule of the first run of which any trajectory is unscored, or ""."""
        for run, (available, scored, *_) in zip(self.runs, self.accepted, strict=True):
            if scored < available:
                with self.scratch.index_errors(run):
                    return other_rule(self.scratch.attach(run), run)
        return ""

    def _count_with(self, changed: Change) -> int:
        """Return how many there would be without a target, with some preferences changed."""
        preferences = replace(self.preferences, target_count=None, **changed)
        with Selection(self.runs, preferences, self.progress, self.scratch) as other:
            try:
                other.select()
            except ExportError:  # there is none at all
                return 0
            return other.count()

    def _refuse_none(self) -> None:
        """Note why nothing is selected. Raises ExportError where pairs, or so many rows, were asked for."""
        why = why_empty(self.funnel(), self.scratch, self.runs, self.preferences)
        self.notes += [note for note in why if note not in self.notes]
        has_target = self.preferences.target_count is not None
        if has_target or self.preferences.mode is ExportMode.PREFERENCE:
            counted = f"{asked(self.preferences)}, none available. " if has_target else ""
            if not (none := " ".join(self.notes)):
                none = f"{none_left(self.funnel(), self.preferences, self._refused())} {self._available()}"
            raise ExportError(counted + none)

    def _refused(self) -> str:
        reasons = self.rows("select reason, count(*) from unfit where reason is not null group by 1 order by 1")
        return counted_reasons(dict(reasons))

    def why_none(self) -> str:
        """Return why nothing is left to write, in sentences."""
        refused = self._refused()
        read = [f"Nothing is left: what the filters leave was left out when it was read: {refused}."] if refused else []
        return " ".join([*self.notes, *read]) or NOTHING_LEFT

    def _available(self) -> str:
        return f"Available: {available_of(self)}."

    def count(self) -> int:
        """Return how many rows of trajectories, or pairs, are selected."""
        return self.scratch.count("placed")

    def prompts(self) -> int:
        """Return how many prompts, per run and window, have anything that the quotas allow."""
        return self.value("select count(distinct unit) from picks")

    def funnel(self) -> list[dict[str, Any]]:
        """Return the stages in their order, each with how many trajectories are left and how many it has dropped."""
        available, scored, accepted, as_hard = (sum(counts) for counts in zip(*self.accepted, strict=True))
        in_pairs = self.preferences.mode is ExportMode.PREFERENCE
        if in_pairs:
            ranked = sum(
                self.value(f"select ifnull(sum(trajectories), 0) from {table}") for table in ("stages", "calls")
            )
            accepted, as_hard = accepted + ranked, as_hard + ranked
        steps = [("available", available)]
        if not in_pairs and self.preferences.acceptance != Acceptance.ANY:
            steps.append(("scored", scored))  # an outcome drops what has none, and what has the other one
        steps += [("reward known" if in_pairs else "accepted", accepted), ("difficulty", as_hard)]
        for place, condition in enumerate(self.conditions[self.runs[0].number]):
            dropped = self.value("select ifnull(sum(trajectories), 0) from stages where stage = ?", place)
            if dropped or condition.is_always_told:
                steps.append((condition.stage, steps[-1][1] - dropped))
        in_row = 2 if in_pairs else 1
        last = PAIRED[Acceptance(self.preferences.acceptance)] if in_pairs else "per prompt"
        if in_pairs and (stage := REJECTED.get(Acceptance(self.preferences.rejected_outcome))):
            steps.append((last, in_row * self.value("select ifnull(sum(pairs), 0) from pairs")))
            last = stage
        steps.append((last, in_row * self.scratch.count("picks")))
        steps += [(name, in_row * count) for name, count in self.across]
        before = [steps[0][1], *(count for _, count in steps)]
        return [
            {"stage": name, "left": count, "dropped": last - count}
            for (name, count), last in zip(steps, before, strict=False)
        ]

    def called(self, run: OpenRun, id: int) -> str:
        """Return what a trajectory is called in a sentence: its id, of several indexes with the name of its run."""
        return f"{id} of {shortened(run.name, LONGEST_NAME)}" if self.has_several_indexes else str(id)

    def value(self, sql: str, *parameters: Any) -> int:
        """Return the one number that answers a question to the tables of the selection."""
        return int(self.scratch.connection.execute(sql, parameters).fetchone()[0])

    def rows(self, sql: str, *parameters: Any) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a question to the tables of the selection."""
        return self.scratch.connection.execute(sql, parameters)


def _nothing_there(connection: sqlite3.Connection, run: OpenRun) -> list[str]:
    spec = run.spec
    note = nothing_there(
        connection, run.id, split=spec.split, first=spec.step_start, last=spec.step_end, unknown_is_train=True,
        schema="source",
    )  # fmt: skip
    return [note] if note else []
