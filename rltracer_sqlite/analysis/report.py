"""The Markdown report of an analysis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..amounts import plural
from ..passrates import Estimate
from .metrics import SOLVED, PromptMetric
from .runs import RunAnalysis, count_scored, histograms
from .selection import Selection
from .windows import WindowSummary

MOST_LISTED = 10
PREVIEW = 80  # characters of a prompt
BAR = 24  # characters of the longest bar of a histogram


def markdown_report(selection: Selection, ks: Sequence[int], runs: Sequence[RunAnalysis]) -> Iterable[str]:
    """Yield the lines of the report: per run its windows, histograms and the prompts that moved."""
    yield "# Pass rates of prompts"
    yield ""
    yield f"Windows of {plural(selection.window, 'step')}." if selection.window else "One window over all steps."
    limits = [f"{name} {value}" for name, value in selection.as_dict().items() if name in LIMITS and value is not None]
    if limits:
        yield f"Only {_text(', '.join(limits))}."
    for run in runs:
        yield from _run(run, ks)
    yield ""
    yield "## How the numbers are made"
    yield ""
    yield from METHOD


def _run(run: RunAnalysis, ks: Sequence[int]) -> Iterable[str]:
    totals = count_scored(run)
    yield ""
    yield f"## {_text(run.run)}"
    yield ""
    yield f"Success: {_text(run.rule)}. Scored: {totals['scored']:,} of {plural(totals['trajectories'], 'trajectory')}."
    if totals["unscored"]:
        yield f"Left out for want of the value that decides success: {totals['unscored']:,}, see unscored.csv."
    if run.amiss:
        yield ""
        yield f"Note: {_text(run.amiss)}"
    yield ""
    yield from _table(
        ["steps", "split", "env", "prompts", "scored", "pass rate", "mean reward", *(f"pass@{k}" for k in ks),
         "all failed", "all passed", "gained", "lost", "groups without signal"],
        [
            [_steps(w), w.split, "all" if w.env is None else w.env, w.prompts, w.scored, _estimate(w.pass_rate),
             _reward(w), *(_estimate(w.pass_at[k]) for k in ks), w.bins["0"], w.bins["1"], w.gained, w.lost,
             f"{w.zero_variance:,} of {w.judged_groups:,}"]
            for w in run.windows
        ],
    )  # fmt: skip
    for histogram in histograms(run, ks):
        yield from _bars(histogram)
    for change in ("lost", "gained"):
        yield from _moved(run.metrics, change)


def _bars(histogram: Mapping[str, Any]) -> Iterable[str]:
    counts: dict[str, int] = histogram["prompts"]
    most = max(counts.values()) or 1
    name = histogram["of"].replace("pass_at_", "pass@").replace("_", " ")
    yield ""
    yield f"### Prompts by {name}, {_place(histogram)}"
    yield ""
    rows = [[label, count, "█" * round(count / most * BAR)] for label, count in counts.items()]
    yield from _table([name, "prompts", ""], rows)
    if left_out := histogram["left_out"]:
        yield ""
        yield f"{left_out:,} more {'has' if left_out == 1 else 'have'} no {name}."


def _moved(metrics: Sequence[PromptMetric], change: str) -> Iterable[str]:
    moved = [metric for metric in metrics if metric.change == change]
    if not moved:
        return
    yield ""
    yield f"### Prompts {change}"
    yield ""
    shown = sorted(moved, key=lambda m: (-(m.step_first or 0), m.count.prompt_key))[:MOST_LISTED]
    rows = [
        [_steps(m), m.count.split, f"{m.pass_rate or 0:.3f}", m.count.prompt_id, m.count.preview[:PREVIEW]]
        for m in shown
    ]
    yield from _table(["steps", "split", "pass rate", "prompt", "begins"], rows)
    if len(moved) > len(shown):
        yield ""
        yield f"{len(shown)} of {len(moved):,}, the latest; prompts.csv has all."


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterable[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        cells = [f"{cell:,}" if isinstance(cell, int) else _text("–" if cell is None else str(cell)) for cell in row]
        yield f"| {' | '.join(cells)} |"


def _estimate(estimate: Estimate) -> str:
    if estimate.mean is None:
        return "–"
    return f"{estimate.mean:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"


def _reward(window: WindowSummary) -> str:
    """Return a mean reward, with over how many trajectories it is where these are not the scored ones."""
    if window.reward_mean is None:
        return "–"
    return f"{window.reward_mean:.3f}" + (f" (over {window.rewarded:,})" if window.rewarded != window.scored else "")


def _steps(item: WindowSummary | PromptMetric) -> str:
    return _place({"step_first": item.step_first, "step_last": item.step_last})


def _place(place: Mapping[str, Any]) -> str:
    first, last = place["step_first"], place["step_last"]
    split = f", {place['split']}" if place.get("split") else ""
    if first is None:
        return f"no step{split}"
    return f"{first}{'' if last == first else '–' if last is None else f'–{last}'}{split}"


def _text(text: str) -> str:
    # A preview is a model's or a user's text: nothing in it may become mark-up, and it stays in its line.
    plain = "".join(character if character.isprintable() else " " for character in text)
    return re.sub(r"([\\`*_\[\]<>&|#!~])", r"\\\1", plain)


LIMITS = ("split", "env", "step_start", "step_end")
METHOD = [
    "* A trajectory without the value that decides success is unscored: it is never counted as a failure.",
    "* A mean reward is over the trajectories that have a reward: so many as it says, or as many as are scored.",
    "* pass@k is 1 − C(n−c, k) / C(n, k) for n scored trajectories and c successes of a prompt in the window (Chen et",
    "  al. 2021, arXiv 2107.03374). It is undefined where n < k; the mean is over the prompts that have it.",
    "* Intervals are 95 %. Prompts are the sample, since trajectories of one prompt resemble each other: Wilson's",
    "  interval with the effective sample size p(1−p) / variance (Franco, Little, Louis and Slud 2019), the variance",
    "  being that of the ratio of prompt totals, or of the mean. Where all prompts agree on 0 or 1, the number of",
    "  prompts is taken.",
    f"* Gained and lost: a prompt is solved in a window where at least {SOLVED:.0%} of its scored trajectories passed,",
    "  and moves when it was not, or was, in the window before in which it was scored; – where no prompt has one.",
    "* A window is named by its first step and its last, also where these have no trajectory of the split; the last",
    "  window ends with the run.",
    "* Groups without signal: all rewards of a prompt group are equal, so that GRPO learns nothing from it; of the",
    "  groups with two or more trajectories and a reward.",
]
