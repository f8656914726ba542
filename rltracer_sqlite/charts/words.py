"""A chart in a sentence or two: what someone reads who does not see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..amounts import LONGEST_NAME, plural, shortened
from ..unrecorded import named

Row = dict[str, Any]
# Why the rewards of a group are all equal.
EQUAL = {"all_failed": "all failed", "all_passed": "all passed", "other_equal": "equal otherwise"}


def describe_rows(chart: str, rows: Sequence[Row], split: str = "") -> str:
    """Return what the rows of a chart say: first and last values, extremes, and how many there are.

    `split` is the one that all of them are of, or "": charts of prompts name it, as their rows do not.
    """
    if not rows:
        return "Nothing to draw: no row matches."
    if chart in OF_PROMPTS:
        return OF_PROMPTS[chart](rows, f" of {shortened(named('split', split), LONGEST_NAME)}" if split else "")
    return DESCRIPTIONS[chart](rows)


def _pass_rate(rows: Sequence[Row]) -> str:
    parts = [
        f"Pass rate, {name}: {_course(series, 'pass_rate', _share)}; "
        f"{sum(row['scored'] for row in series):,} scored in all."
        for name, series in _by(rows, "split")
    ]
    return " ".join(parts)


def _reward(rows: Sequence[Row]) -> str:
    parts = []
    for name, component in _by(rows, "component"):
        for split, series in _by(component, "split"):
            count = sum(row["trajectories"] for row in series if row["mean"] is not None)
            in_all = f"; {count:,} recorded in all" if count else ""
            called = shortened(name, LONGEST_NAME)
            parts.append(f"{called}, {split}: {_ends(series, 'mean', _number)}{in_all}.")
    return "Mean reward. " + " ".join(parts)


def _histogram(rows: Sequence[Row], of_split: str) -> str:
    parts = []
    for _, window in _by(rows, "window"):
        counts = {row["pass_bucket"]: row["prompts"] for row in window}
        total = window[0]["window_prompts"]
        parts.append(
            f"{step_words(window[0]).capitalize()}: of {plural(total, 'scored prompt')}{of_split} "
            f"{counts.get('0', 0):,} always failed, "
            f"{counts.get('1', 0):,} always passed, {total - counts.get('0', 0) - counts.get('1', 0):,} did both."
        )
    return " ".join(parts)


def _difficulty(rows: Sequence[Row], of_split: str) -> str:
    prompts = {row["rank"]: row for row in rows}
    windows = len({row["window"] for row in rows})
    hardest, easiest = prompts[min(prompts)], prompts[max(prompts)]
    return (
        f"Pass rates of {len(prompts):,} of {plural(rows[0]['all_prompts'], 'scored prompt')}{of_split} in "
        f"{plural(windows, 'window')} of steps, from the "
        f"hardest ({_share(hardest['overall_pass_rate'])} over all windows) to the easiest "
        f"({_share(easiest['overall_pass_rate'])})."
    )


def _length(rows: Sequence[Row]) -> str:
    names = {"completion_tokens": "sampled tokens", "turns": "assistant turns", "tool_calls": "tool calls"}
    parts = [
        f"{label}, {split}: {_ends(series, key, _number)}."
        for key, label in names.items()
        for split, series in _by(rows, "split")
    ]
    return "Means per trajectory. " + " ".join(parts)


def _failures(rows: Sequence[Row]) -> str:
    parts = []
    for key, label in (("truncated", "cut off by a limit"), ("error", "ended with an error")):
        for split, series in _by(rows, "split"):
            count, known = (sum(row[f"{key}_{which}"] or 0 for row in series) for which in ("count", "known"))
            of_all = f"; {count:,} of {known:,} over all steps" if known else ""
            parts.append(f"{label}, {split}: {_ends(series, key, _share)}{of_all}.")
    return "Share of the trajectories that record it. " + " ".join(parts)


def _zero_variance(rows: Sequence[Row]) -> str:
    parts = []
    for split, series in _by(rows, "split"):
        groups = sum(row["prompt_groups"] for row in series)
        shares = {name: sum(row[name] * row["prompt_groups"] for row in series) / groups for name in EQUAL}
        told = [f"{_share(share)} {EQUAL[name]}" for name, share in shares.items() if share or name != "other_equal"]
        reasons = f"{', '.join(told[:-1])} and {told[-1]}"
        parts.append(
            f"Groups without signal, {split}: {_course(series, 'zero_variance', _share)}; over all steps {reasons}, "
            f"of {plural(groups, 'group')}."
        )
    return " ".join(parts)


def _ends(series: Sequence[Row], key: str, form: Callable[[float], str]) -> str:
    known = [row for row in series if row[key] is not None]
    if not known:
        return "not recorded"
    first, last = known[0], known[-1]
    at_end = f", {form(last[key])} at {step_words(last)}" if len(known) > 1 else ""
    return f"{form(first[key])} at {step_words(first)}{at_end}"


def _course(series: Sequence[Row], key: str, form: Callable[[float], str]) -> str:
    low, high = min(series, key=lambda row: row[key]), max(series, key=lambda row: row[key])
    extremes = f", lowest {form(low[key])} at {step_words(low)}, highest {form(high[key])} at {step_words(high)}"
    return _ends(series, key, form) + (extremes if len(series) > 1 else "")


def _by(rows: Iterable[Row], key: str) -> list[tuple[Any, list[Row]]]:
    series: dict[Any, list[Row]] = {}
    for row in rows:
        series.setdefault("no split" if key == "split" and row[key] is None else row[key], []).append(row)
    return list(series.items())


def step_words(row: Row) -> str:
    """Return the steps of a row as a sentence names them."""
    if row["step_first"] is None:
        return "no step"
    if row["step_first"] == row["step_last"]:
        return f"step {row['step_first']:,}"
    return f"steps {row['step_first']:,}–{row['step_last']:,}"


def _share(value: float) -> str:
    return f"{value:.1%}"


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


DESCRIPTIONS: dict[str, Callable[[Sequence[Row]], str]] = {
    "pass_rate": _pass_rate,
    "reward": _reward,
    "length": _length,
    "failures": _failures,
    "zero_variance": _zero_variance,
}
OF_PROMPTS: dict[str, Callable[[Sequence[Row], str], str]] = {"histogram": _histogram, "difficulty": _difficulty}
