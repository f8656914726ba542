"""The summary of a window: rates with intervals, and how its prompts fared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..amounts import plural
from ..passrates import PASS_BINS, Estimate, estimate_mean, estimate_rate
from ..reprs import short
from ..unrecorded import NOT_RECORDED
from .metrics import PromptMetric
from .selection import Rewards


@dataclass(frozen=True)
class WindowSummary:
    """One window of a run and split, in one env or (`env` is None) in all of them.

    An `env` of NOT_RECORDED is what has none.
    """

    run: str
    window: int | None
    step_first: int | None
    step_last: int | None
    split: str | None
    env: str | None
    prompts: int
    prompt_groups: int
    trajectories: int
    scored: int
    successes: int
    pass_rate: Estimate  # successes / scored
    rewarded: int  # trajectories that have a reward, scored or not
    reward_mean: float | None  # the mean of theirs
    pass_at: dict[int, Estimate]  # the mean over the prompts with at least k scored trajectories
    bins: dict[str, int]  # prompts by pass-rate bin
    unscored_prompts: int
    zero_variance: int  # prompt groups whose rewards are all equal
    judged_groups: int  # prompt groups of two or more trajectories with a reward: of these, zero_variance
    gained: int | None  # None where no prompt was scored in a window before
    lost: int | None

    def __repr__(self) -> str:
        place = f"steps {self.step_first} to {'the last' if self.step_last is None else self.step_last}"
        rate = "unscored" if self.pass_rate.mean is None else f"pass rate {self.pass_rate.mean:.3f}"
        names = ", ".join(short(name) for name in (self.split, self.env) if name is not None)
        return (
            f"<WindowSummary of {short(self.run)}, {place}, {names or 'all'}: {plural(self.prompts, 'prompt')}, {rate}>"
        )

    def as_row(self) -> dict[str, Any]:
        """Return it as one flat row: what windows.csv and analysis.json hold."""
        row: dict[str, Any] = {
            "run": self.run,
            "window": self.window,
            "step_first": self.step_first,
            "step_last": self.step_last,
            "split": self.split,
            "env": self.env,
            "prompts": self.prompts,
            "trajectories": self.trajectories,
            "scored": self.scored,
            "unscored": self.trajectories - self.scored,
            "successes": self.successes,
            **_flat("pass_rate", self.pass_rate),
            "rewarded": self.rewarded,
            "reward_mean": self.reward_mean,
        }
        for k, estimate in self.pass_at.items():
            row |= {**_flat(f"mean_pass_at_{k}", estimate), f"prompts_with_{k}": estimate.prompts}
        return row | {
            "prompts_all_failed": self.bins[PASS_BINS[0].label],
            "prompts_all_passed": self.bins[PASS_BINS[-1].label],
            "prompts_unscored": self.unscored_prompts,
            "gained": self.gained,
            "lost": self.lost,
            "prompt_groups": self.prompt_groups,
            "zero_variance_groups": self.zero_variance,
            "judged_groups": self.judged_groups,
        }


def summarise_windows(metrics: Iterable[PromptMetric], ks: Sequence[int], rewards: Rewards) -> list[WindowSummary]:
    """Return a summary per window and split, followed by one per env where the window has several."""
    windows: dict[tuple[Any, ...], list[PromptMetric]] = {}
    for metric in metrics:
        windows.setdefault((metric.run, metric.count.window, metric.count.split), []).append(metric)
    summaries = []
    for members in windows.values():
        summaries.append(_summarise(members, None, ks, rewards))
        envs: dict[str | None, list[PromptMetric]] = {}
        for metric in members:
            envs.setdefault(metric.count.env, []).append(metric)
        if len(envs) > 1:
            summaries += [_summarise(inner, env or NOT_RECORDED, ks, rewards) for env, inner in envs.items()]
    return summaries


def _summarise(members: Sequence[PromptMetric], env: str | None, ks: Sequence[int], rewards: Rewards) -> WindowSummary:
    first = members[0]
    counts = [metric.count for metric in members]
    # In an order of their own: the last digit of a sum depends on it.
    places = dict.fromkeys((count.window, count.split, count.env) for count in counts)
    rewarded, reward_mean = _mean_reward([rewards[place] for place in places if place in rewards])
    bins = Counter(metric.pass_bin for metric in members)
    changes = Counter(metric.change for metric in members) if any(metric.compared for metric in members) else None
    return WindowSummary(
        run=first.run,
        window=first.count.window,
        step_first=first.step_first,
        step_last=first.step_last,
        split=first.count.split,
        env=env,
        prompts=len(members),
        prompt_groups=sum(count.prompt_groups for count in counts),
        trajectories=sum(count.trajectories for count in counts),
        scored=sum(count.scored for count in counts),
        successes=sum(count.successes for count in counts),
        pass_rate=estimate_rate((count.scored, count.successes) for count in counts),
        rewarded=rewarded,
        reward_mean=reward_mean,
        pass_at={k: _mean_pass_at(members, k) for k in ks},
        bins={bin.label: bins[bin.label] for bin in PASS_BINS},
        unscored_prompts=bins[None],
        zero_variance=sum(count.zero_variance for count in counts),
        judged_groups=sum(count.judged_groups for count in counts),
        gained=None if changes is None else changes["gained"],
        lost=None if changes is None else changes["lost"],
    )


def _mean_pass_at(members: Sequence[PromptMetric], k: int) -> Estimate:
    known = [(metric.pass_at[k], metric.count.scored) for metric in members]
    values = [value for value, _ in known if value is not None]
    return estimate_mean(values, sum(scored for value, scored in known if value is not None))


def _mean_reward(sums: Sequence[tuple[int, float | None]]) -> tuple[int, float | None]:
    """Return how many trajectories have a reward and their mean; None without any, and where no sum can hold them."""
    count, totals = sum(count for count, _ in sums), [total for _, total in sums]
    if not count or None in totals or not math.isfinite(total := sum(filter(None, totals))):
        return count, None
    return count, total / count


def _flat(name: str, estimate: Estimate) -> dict[str, float | None]:
    return {name: estimate.mean, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
