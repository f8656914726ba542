"""One run analysed: its prompts, windows and unscored trajectories, and what the files and the report count of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..amounts import plural
from ..arguments import instance, shown, whole_number
from ..index.named import run_names
from ..index.queries import runs
from ..index.states import amiss, lists_them, run_states
from ..on_demand import name_of_place
from ..passrates import PASS_BINS, SuccessRule, pass_bin
from ..reprs import short
from ..reward_parts import reward_parts, rule_in_words
from ..runs import WhichRunError
from .metrics import PromptMetric, prompt_metrics
from .selection import Selection, UnscoredTrajectory, end_steps, list_unscored, read_counts, read_rewards
from .windows import WindowSummary, summarise_windows


@dataclass(frozen=True)
class RunAnalysis:
    """What was found of one run: `rule` is the success rule that was applied, in words.

    Where that is on the total of several rewards, `rule` names them.

    `amiss` says what of the run was not read, or is gone since: problems, files and steps; "" for nothing.
    """

    run: str
    rule: str
    metrics: list[PromptMetric]
    windows: list[WindowSummary]
    unscored: list[UnscoredTrajectory]
    amiss: str = ""

    def __repr__(self) -> str:
        counts = f"{plural(len(self.windows), 'summary')} of windows, {plural(len(self.metrics), 'prompt metric')}"
        left = f"{len(self.unscored):,} unscored" + (f"; {short(self.amiss)}" if self.amiss else "")
        return f"<RunAnalysis of {short(self.run)} by {short(self.rule)}: {counts}, {left}>"


def analyse_run(
    connection: sqlite3.Connection, run_id: int, selection: Selection, ks: Sequence[int] = (1, 4, 8)
) -> RunAnalysis:
    """Return the metrics and summaries of one run of an open index, with pass@k for each of `ks`.

    Raises WhichRunError for a run that the index does not hold, and SuccessRuleError where it lacks the rule's value.
    """
    instance("connection", connection, sqlite3.Connection)
    instance("selection", selection, Selection)
    if not isinstance(ks, Iterable):
        raise TypeError(f"ks is {shown(ks)}: it is a list of whole numbers.")
    run_id, ks = whole_number("run_id", run_id), [whole_number("k", k, least=1) for k in ks]
    known = runs(connection)
    run = next((one for one in known if one.id == run_id), None)
    if run is None:
        raise WhichRunError(f"The index has no run {run_id}. It holds: {run_names(known)}.")
    name, rule = run.name, selection.rule or SuccessRule(run.success_path, run.success_threshold)
    counts = read_counts(connection, run_id, selection)
    metrics = prompt_metrics(name, counts, end_steps(connection, run_id, selection), selection.window, ks)
    windows = summarise_windows(metrics, ks, read_rewards(connection, run_id, selection))
    unscored = list_unscored(connection, run_id, selection)
    how = lists_them(name_of_place(_file_of(connection), run.root), name if len(known) > 1 else None)
    said = rule_in_words(rule, reward_parts(connection, run_id, rule.path))
    return RunAnalysis(name, said, metrics, windows, unscored, amiss(run_states(connection)[run_id], how))


def _file_of(connection: sqlite3.Connection) -> Path:
    return Path(next(file for _, name, file in connection.execute("pragma database_list") if name == "main"))


def count_scored(run: RunAnalysis) -> dict[str, int]:
    """Return how many trajectories a run has, and how many of them are scored and unscored."""
    trajectories = sum(metric.count.trajectories for metric in run.metrics)
    scored = sum(metric.count.scored for metric in run.metrics)
    return {"trajectories": trajectories, "scored": scored, "unscored": trajectories - scored}


def histograms(run: RunAnalysis, ks: Sequence[int]) -> list[dict[str, Any]]:
    """Return the number of prompts per bin, for the pass rate and for pass@k, of each window and split.

    `left_out` is how many prompts are in none: unscored ones, and for pass@k those with fewer than k scored
    trajectories.
    """
    found = []
    for window in (window for window in run.windows if window.env is None):
        place = {name: window.as_row()[name] for name in ("run", "window", "step_first", "step_last", "split")}
        found.append({**place, "of": "pass_rate", "prompts": window.bins, "left_out": window.unscored_prompts})
        members = [m for m in run.metrics if (m.count.window, m.count.split) == (window.window, window.split)]
        for k in (k for k in ks if k > 1):
            bins = dict.fromkeys((bin.label for bin in PASS_BINS), 0)
            for metric in members:
                value = metric.pass_at[k]
                if value is not None:
                    bins[_bin_of(value)] += 1
            left_out = window.prompts - sum(bins.values())
            found.append({**place, "of": f"pass_at_{k}", "prompts": bins, "left_out": left_out})
    return found


def _bin_of(value: float) -> str:
    # pass@k is the nearest float to its fraction, so 0 and 1 are met exactly.
    numerator, denominator = value.as_integer_ratio()
    return pass_bin(denominator, numerator) or PASS_BINS[0].label
