"""The metrics of one prompt in one window: pass rate, pass@k, and whether it was solved before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..passrates import pass_at_k, pass_bin, pass_rate, wilson_interval, window_steps
from ..reprs import short
from .selection import PromptCount

SOLVED = 0.5  # a prompt counts as solved in a window when at least this share of its trajectories passed


@dataclass(frozen=True)
class PromptMetric:
    """One prompt in one window, split and env.

    The interval is Wilson's over its own trajectories. `change` is "gained" or "lost" when the prompt was failed or
    solved in the window before in which it was scored, else None. `compared` is whether there is such a window.
    """

    run: str
    step_first: int | None
    step_last: int | None
    count: PromptCount
    pass_rate: float | None
    low: float | None
    high: float | None
    pass_at: dict[int, float | None]
    change: str | None
    compared: bool

    def __repr__(self) -> str:
        rate = "unscored" if self.pass_rate is None else f"pass rate {self.pass_rate:.3f}"
        place = f"steps {self.step_first} to {'the last' if self.step_last is None else self.step_last}"
        return f"<PromptMetric of prompt {self.count.prompt_id}, {place}: {rate}, {short(self.count.preview)}>"

    @property
    def pass_bin(self) -> str | None:
        """Return the label of its pass-rate bin."""
        return pass_bin(self.count.scored, self.count.successes)

    def as_row(self) -> dict[str, Any]:
        """Return it as one flat row: what prompts.csv and prompts.json hold."""
        return {
            "run": self.run,
            "window": self.count.window,
            "step_first": self.step_first,
            "step_last": self.step_last,
            **self.count._asdict(),
            "pass_rate": self.pass_rate,
            "pass_rate_low": self.low,
            "pass_rate_high": self.high,
            **{f"pass_at_{k}": value for k, value in self.pass_at.items()},
            "change": self.change,
        }


def prompt_metrics(
    run: str,
    counts: Iterable[PromptCount],
    ends: tuple[int | None, int | None],
    window: int | None,
    ks: Sequence[int],
) -> list[PromptMetric]:
    """Return the metrics of a run's counts, which come in the order of their windows.

    `ends` are the first and the last step of all of them.
    """
    first, last = ends
    solved_before: dict[tuple[Any, ...], bool] = {}
    metrics = []
    for count in counts:
        rate = pass_rate(count.scored, count.successes)
        prompt = (count.split, count.env, count.prompt_id)
        change, before = None, None
        if rate is not None and count.window is not None:
            before = solved_before.get(prompt)
            solved_before[prompt] = rate >= SOLVED
            if before is not None and before != (rate >= SOLVED):
                change = "lost" if before else "gained"
        low, high = wilson_interval(rate, count.scored) if rate is not None else (None, None)
        pass_at = {k: pass_at_k(count.scored, count.successes, k) for k in ks}
        steps = window_steps(count.window, first, window, last)
        metrics.append(PromptMetric(run, *steps, count, rate, low, high, pass_at, change, before is not None))
    return metrics
