"""What the quota of each prompt takes: its candidates in the order of a seeded draw, or the best and the worst of them.

Draws are made for those alone whose order decides anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from .draws import draw, layer, prompt_identity, weighted
from .preferences import Acceptance, ExportMode, ExportPreferences, Order
from .runs import OpenRun

FAR = inf  # the length of what has no known one: behind everything that has
MANY = 10_000  # to be counted at once

# A whole number is written far quicker as one.
REWARD = "case when t.reward = cast(t.reward as integer) then cast(t.reward as integer) else t.reward end"
SUCCESS = {Acceptance.ANY: None, Acceptance.CORRECT: 1, Acceptance.INCORRECT: 0}

# What a candidate sorts by: its draw, or a pair that begins with what comes before the draw.
Key = Any
Side = list[tuple[float, Key, int]]  # what can stand on one side of a pair: by what it is sorted, its draw, its id
# The candidates of a prompt group: its step, and a tuple per column.
Group = tuple[int | None, dict[str, tuple[Any, ...]]]


class Pick(NamedTuple):
    """What a quota allows; columns of `picks`."""

    run: int
    unit: int
    id: int
    other: int | None
    slot: int
    layer: float | bytes | None = None
    draw: bytes | None = None
    prompt: bytes | None = None


class Prompt(NamedTuple):
    """What orders the picks of one prompt among those of all, read for limits over all prompts only."""

    window: int | None
    split: str | None
    env: str | None
    key: str
    task: str


class Ranking:
    """Ranks the candidates of one run, unit by unit, and counts on the way."""

    def __init__(self, run: OpenRun, preferences: ExportPreferences) -> None:
        self.run, self.preferences = run, preferences
        self.quota, self.power = preferences.quota, preferences.tool_call_sampling_power
        self.in_pairs = preferences.mode is ExportMode.PREFERENCE
        self.is_limited = preferences.is_limited
        # What either one of a pair has to be; None where its outcome does not matter.
        self.better = SUCCESS[Acceptance(preferences.acceptance)]
        self.worse = SUCCESS[Acceptance(preferences.rejected_outcome)]
        self.pairs = 0  # that there are whatever the outcome of the worse one; counted where it matters
        self.stages: Counter[int] = Counter()  # trajectories that fail a stage, and none before it
        self.calls: Counter[int | None] = Counter()  # tool calls of those that fail none
        self.has_identity = preferences.unique_prompts or preferences.global_per_prompt is not None
        self.needs_prompts = self.is_limited and (self.has_identity or not self.power)
        self.columns = {"id": "t.id", "uid": "t.uid", "calls": "t.tool_calls"}
        if preferences.order is Order.SHORTEST:
            self.columns["tokens"] = "t.completion_tokens"
        if self.in_pairs:
            self.columns |= {"reward": REWARD, "success": "t.success"}

    def picks(self, rows: Iterable[Any]) -> Iterator[Pick]:
        """Yield what the quota of each unit allows, from rows that hold a prompt group each, units together."""
        calls: list[int | None] = []
        chosen = self._pairs if self.in_pairs else self._singles
        for unit, parts in groupby(rows, key=itemgetter(0)):
            groups: list[Group] = []
            for row in parts:
                found = orjson.loads(row[2])
                passed = [one for one in found if type(one) is list]
                if len(passed) < len(found):
                    self.stages.update(one for one in found if type(one) is int)
                if passed:
                    arrays = dict(zip(self.columns, zip(*passed, strict=True), strict=True))
                    calls += arrays["calls"]
                    groups.append((row[1], arrays))
            if len(calls) > MANY:
                self.calls.update(calls)
                calls.clear()
            if groups:
                yield from self._placed(unit, chosen(groups), Prompt(*row[3:]) if self.needs_prompts else None)
        self.calls.update(calls)

    def _singles(self, groups: list[Group]) -> Iterable[tuple[Key, int, None]]:
        if not self._is_order_needed(sum(len(arrays["id"]) for _, arrays in groups)):
            return [(None, id, None) for _, arrays in groups for id in arrays["id"]]
        candidates = [
            one for step, arrays in groups for one in zip(self._keys(step, arrays), arrays["id"], strict=True)
        ]
        candidates.sort()
        return [(key, id, None) for key, id in candidates[: self.quota]]

    def _is_order_needed(self, count: int) -> bool:
        """Say whether a draw decides anything: which candidates are taken, or what is written of their order."""
        is_cut = self.quota is not None and count > self.quota
        return is_cut or self.is_limited or self.preferences.include_provenance or self.preferences.distinct

    def _pairs(self, groups: list[Group]) -> Iterator[tuple[Key, int, int]]:
        """Yield the best with the worst, the second best with the second worst, as long as the margin is wide enough.

        So the margins fall from pair to pair, and a trajectory stands in one pair at most.
        """
        rewards = [reward for _, arrays in groups for reward in arrays["reward"]]
        if not self._is_wide(max(rewards) - min(rewards)):
            return
        every, best, worst = Side(), Side(), Side()
        for step, arrays in groups:
            those = list(zip(arrays["reward"], self._keys(step, arrays), arrays["id"], strict=True))
            every += those
            best += [(-reward, key, id) for reward, key, id in _with(self.better, those, arrays["success"])]
            worst += [] if self.worse is None else _with(self.worse, those, arrays["success"])
        best.sort()
        if self.worse is None:
            yield from self._paired(best, every)
            return
        self.pairs += sum(1 for _ in self._paired(best, every))
        yield from self._paired(best, worst)

    def _paired(self, best: Side, worst: Side) -> Iterator[tuple[Key, int, int]]:
        worst.sort()
        for better, worse in zip(best[: self.quota], worst, strict=False):
            if not self._is_wide(-better[0] - worse[0]):
                return
            yield better[1], better[2], worse[2]

    def _is_wide(self, margin: float) -> bool:
        return margin > 0 and margin >= self.preferences.reward_margin

    def _keys(self, step: int | None, arrays: dict[str, tuple[Any, ...]]) -> Iterable[Key]:
        draws = draw(self.preferences.seed, self.run.name, step, arrays["uid"])
        if self.power:
            return weighted(draws, [calls or 0 for calls in arrays["calls"]], self.power)
        if self.preferences.order is Order.SHORTEST:
            return zip((FAR if tokens is None else tokens for tokens in arrays["tokens"]), draws, strict=True)
        return draws

    def _placed(
        self, unit: int, chosen: Iterable[tuple[Key, int, int | None]], prompt: Prompt | None
    ) -> Iterator[Pick]:
        number, identity = self.run.number, None
        if prompt is not None and self.has_identity:
            identity = prompt_identity(prompt.key, prompt.task)
        for slot, (key, id, other) in enumerate(chosen, start=1):
            if not self.is_limited:
                yield Pick(number, unit, id, other, slot)
                continue
            order = key[0] if self.power else self._layer(slot, prompt)
            yield Pick(number, unit, id, other, slot, order, key if isinstance(key, bytes) else key[1], identity)

    def _layer(self, slot: int, prompt: Prompt | None) -> bytes:
        assert prompt is not None
        first = self.run.window_bounds(prompt.window, self.preferences.window_size)[0]
        # An RL prompt is one unit whatever its split and env; which of them was met first must not matter.
        place = "" if self.preferences.mode is ExportMode.RL else f"{prompt.split}:{prompt.env}:"
        return layer(self.preferences.seed, slot, self.run.name, first, place, prompt.key, prompt.task)


def _with(outcome: int | None, those: Side, successes: Iterable[int | None]) -> Side:
    """Return those whose success is this one; all where it does not matter."""
    if outcome is None:
        return those
    return [one for one, success in zip(those, successes, strict=True) if success == outcome]
