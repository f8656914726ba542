"""What a pass rate is: the success rule, pass@k, its interval, windows of steps and bins, defined once."""

from __future__ import annotations

import difflib
import math
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .amounts import exactly, plural
from .arguments import as_number, is_text, shown
from .index.columns import resolve_path
from .index.views import WINDOW_SIZES as WINDOW_SIZES
from .reprs import given

NORMAL_QUANTILE = 1.959963984540054  # two-sided 95 %


class SuccessRuleError(ValueError):
    """A success rule that cannot be read, or names a value that the index does not hold."""


@dataclass(frozen=True)
class SuccessRule:
    """A trajectory is a success when its value at `path` is at least `threshold`; without a value it is unscored."""

    path: str
    threshold: float

    def __post_init__(self) -> None:
        if not is_text(self.path) or (number := as_number(self.threshold)) is None:
            raise SuccessRuleError(f"A success rule is a path and a number, not {shown((self.path, self.threshold))}")
        object.__setattr__(self, "threshold", number)

    __repr__ = given

    def __str__(self) -> str:
        return f"{self.path} >= {exactly(self.threshold)}"


def unscored_words(trajectories: int, scored: int, split: str = "") -> str:
    """Return how many of some trajectories, all of a `split` where one is given, a success rule leaves unscored."""
    if scored == trajectories:
        return f"all of {split} scored" if split else "all scored"
    of_split = f" of {split}" if split else ""
    return f"{trajectories - scored:,} of {plural(trajectories, 'trajectory')}{of_split} unscored"


def parse_rule(text: str) -> SuccessRule:
    """Return the rule written as 'rewards.reward.score >= 0.5'; a path alone means '>= 1'.

    A path may hold spaces, as names of rewards do, where a comparison stands behind it.
    Raises SuccessRuleError for another comparison, or a threshold that is not a finite number.
    """
    if not isinstance(text, str):
        raise TypeError(f"A rule is text, and {shown(text)} is none.")
    before, comparison, after = text.rpartition(">=")
    path, number = (before.strip(), after.strip()) if comparison else (text.strip(), "")
    if not re.fullmatch(r"(?s:.*[^<>=])" if comparison else r"[^\s<>=]+", path):
        raise SuccessRuleError(
            f"Cannot read the rule {shown(text)}: write PATH >= NUMBER, as in 'metrics.correct >= 1'"
        )
    try:
        threshold = float(number) if comparison else 1.0
    except ValueError:
        threshold = math.nan
    if not math.isfinite(threshold):
        raise SuccessRuleError(f"Cannot read the rule {shown(text)}: {shown(number)} is not a finite number")
    return SuccessRule(path, threshold)


def success_column(connection: sqlite3.Connection, path: str) -> str:
    """Return the column of trajectories that holds the value at a dotted path.

    Raises SuccessRuleError, naming similar paths, when the index holds no numbers under that path.
    """
    column = resolve_path(connection, path)
    kinds = dict(connection.execute("select column_name, kind from fields where column_name is not null"))
    if column and kinds.get(column, "number") == "number":
        return column
    recorded = [str(row[0]) for row in connection.execute("select path from fields order by path")]
    if column or path in recorded:
        raise SuccessRuleError(f"{path} is recorded, but not as a number that this index holds")
    similar = difflib.get_close_matches(path, dict.fromkeys([*recorded, "reward"]), n=3) or _beside(connection, path)
    hint = f"; similar: {', '.join(similar)}" if similar else "; the table fields lists what is recorded"
    raise SuccessRuleError(f"No value is recorded under {path}{hint}")


def _beside(connection: sqlite3.Connection, path: str) -> list[str]:
    """Return the first few numbers that are recorded beside a dotted path, such as other metrics."""
    folder = path.rpartition(".")[0]
    rows = connection.execute("select path from fields where kind = 'number' order by path")
    return [name for (name,) in rows if folder and name.startswith(f"{folder}.")][:5]


def pass_rate(scored: int, successes: int) -> float | None:
    """Return successes / scored, or None where nothing is scored."""
    return successes / scored if scored else None


def pass_at_k(scored: int, successes: int, k: int) -> float | None:
    """Return the chance that k of the scored trajectories, drawn without replacement, hold a success.

    This is 1 - C(n-c, k) / C(n, k) for n scored and c successes, the unbiased estimator of Chen et al. 2021,
    "Evaluating Large Language Models Trained on Code" (arXiv 2107.03374). None where n < k.
    """
    if k < 1 or not 0 <= successes <= scored:
        raise ValueError(f"pass@{k} of {successes} successes in {scored} is not defined")
    if scored < k:
        return None
    draws = math.comb(scored, k)
    return (draws - math.comb(scored - successes, k)) / draws


def wilson_interval(rate: float, size: float) -> tuple[float, float]:
    """Return the 95 % score interval of a proportion seen in `size` independent trials (Wilson 1927)."""
    spread = NORMAL_QUANTILE**2 / size
    centre = (rate + spread / 2) / (1 + spread)
    half = math.sqrt(rate * (1 - rate) * spread + spread**2 / 4) / (1 + spread)
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class Estimate:
    """A mean over prompts with its 95 % interval, and how many prompts it rests on."""

    mean: float | None
    low: float | None
    high: float | None
    prompts: int


def estimate_rate(counts: Iterable[tuple[int, int]]) -> Estimate:
    """Return successes / scored over prompts, from each prompt's (scored, successes), with its interval.

    Trajectories of one prompt resemble each other, so the prompts are the sample: the variance is that of a ratio
    of cluster totals, and the interval is Wilson's with the effective sample size p(1-p) / variance, as in Franco,
    Little, Louis and Slud 2019 (Journal of Survey Statistics and Methodology 7:3). Where all prompts agree on 0 or 1
    the variance says nothing, and the number of prompts is taken.
    """
    pairs = [(scored, successes) for scored, successes in counts if scored]
    prompts, total, passed = len(pairs), sum(n for n, _ in pairs), sum(c for _, c in pairs)
    if not prompts:
        return Estimate(None, None, None, 0)
    # Whole numbers, so that prompts which agree have a variance of exactly 0.
    squares = sum((successes * total - passed * scored) ** 2 for scored, successes in pairs)
    variance = squares / total**4 * prompts / (prompts - 1) if prompts > 1 else None
    rate = passed / total
    return Estimate(rate, *wilson_interval(rate, _effective_size(rate, variance, prompts, total)), prompts)


def estimate_mean(values: Sequence[float], trajectories: int) -> Estimate:
    """Return the mean of a value between 0 and 1 per prompt, such as pass@k, with an interval like estimate_rate's."""
    prompts = len(values)
    if not prompts:
        return Estimate(None, None, None, 0)
    mean = min(1.0, math.fsum(values) / prompts)
    squares = math.fsum((value - mean) ** 2 for value in values)
    variance = squares / (prompts * (prompts - 1)) if prompts > 1 else None
    return Estimate(mean, *wilson_interval(mean, _effective_size(mean, variance, prompts, trajectories)), prompts)


def _effective_size(rate: float, variance: float | None, prompts: int, limit: int) -> float:
    if not 0 < rate < 1:
        return prompts
    if variance is None:
        return 1
    if variance == 0:
        return limit
    return min(max(rate * (1 - rate) / variance, 1), limit)


def window_steps(
    window: int | None, first: int | None, size: int | None, last: int | None = None
) -> tuple[int | None, int | None]:
    """Return the first and last step of a window, from 0; windows begin at `first`, and no size means one for all.

    No window ends after `last`, the last step that there is.
    """
    if window is None or first is None:
        return None, None
    if not size:
        return first, last
    end = first + window * size + size - 1
    return first + window * size, end if last is None else min(end, last)


@dataclass(frozen=True)
class PassBin:
    """A bin of pass rates; the exact ends 0 and 1 are bins of their own.

    `conditions` are Datasette's filter operators with their values: (("gt", "0"), ("lt", "0.25")).
    """

    label: str
    conditions: tuple[tuple[str, str], ...]


PASS_BINS = (
    PassBin("0", (("exact", "0"),)),
    PassBin("0–0.25", (("gt", "0"), ("lt", "0.25"))),
    PassBin("0.25–0.5", (("gte", "0.25"), ("lt", "0.5"))),
    PassBin("0.5–0.75", (("gte", "0.5"), ("lt", "0.75"))),
    PassBin("0.75–1", (("gte", "0.75"), ("lt", "1"))),
    PassBin("1", (("exact", "1"),)),
)


def pass_bin(scored: int, successes: int) -> str | None:
    """Return the label of the bin of a pass rate, from whole numbers; None where nothing is scored."""
    if not scored:
        return None
    if successes in (0, scored):
        return PASS_BINS[0 if successes == 0 else -1].label
    return PASS_BINS[1 + successes * 4 // scored].label
