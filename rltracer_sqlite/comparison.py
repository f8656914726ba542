"""What two trajectories are compared by: facts, rewards and metrics, and where what they say begins to differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .messages import content_text
from .recorded_values import flat, value_text

# What is set side by side, by its column of the index and what it is called.
FACTS = {
    "run": "run",
    "step": "step",
    "env": "environment",
    "reward": "reward",
    "advantage": "advantage",
    "turns": "turns",
    "tool_calls": "tool calls",
    "completion_tokens": "completion tokens",
    "logprob_mean": "mean logprob",
    "stop_condition": "stopped",
    "truncated": "truncated",
    "error_type": "error",
    "policy_version": "policy version",
    "seconds": "seconds",
}
DERIVED_FROM = "the reward minus the mean of its prompt group"
DERIVED = f"A derived advantage is {DERIVED_FROM}."
WORD = 40  # characters that the parting of two texts is moved back, at most, to stand between words
DIGITS, ALL_DIGITS = 4, 17  # significant ones of a fraction, and so many that no two numbers look the same
ROUNDING = 1e-12  # the relative difference that the order of a sum can make
LAST_VERSION = "info_tail_version"  # column of the policy's version that sampled the last tokens, where it is known

Signature = tuple[Any, ...]
Figure = Callable[[float, int], "str | None"]  # how a number is said with so many significant digits of a fraction


class Measures(NamedTuple):
    """Rewards or metrics of two trajectories, by name: those that differ with both values, and those that do not."""

    title: str
    differing: dict[str, tuple[Any, Any]]  # None where one has no such value
    same: dict[str, Any]


def measures(
    rows: Sequence[Mapping[str, Any]], metadata: Sequence[Mapping[str, Any] | None]
) -> tuple[Measures, Measures]:
    """Return the named rewards and the metrics of two trajectories.

    They are those of the records; where one could not be read, what the index has of both. A reward is its score, or
    (score, weight) where it has a weight other than 1.
    """
    read = [known for known in metadata if known is not None]
    rewards = [_scores(known.get("rewards")) for known in read]
    metrics = [dict(flat(known.get("metrics"))) for known in read]
    if len(read) < len(rows):
        rewards, metrics = ([_columns(row, prefix) for row in rows] for prefix in ("reward_", "metric_"))
    return _measures("named reward", rewards), _measures("metric", metrics)


def _measures(title: str, values: Sequence[Mapping[str, Any]]) -> Measures:
    left, right = values
    pairs = {name: (left.get(name), right.get(name)) for name in dict.fromkeys([*left, *right])}
    alike = {name: is_same(*pair) for name, pair in pairs.items()}
    differing = {name: pair for name, pair in pairs.items() if not alike[name]}
    return Measures(
        title, differing, {name: one for name, (one, _) in pairs.items() if alike[name] and one is not None}
    )


def _scores(rewards: object) -> dict[str, Any]:
    scores = {}
    for name, reward in rewards.items() if isinstance(rewards, Mapping) else ():
        score, weight = (reward.get("score"), reward.get("weight")) if isinstance(reward, Mapping) else (reward, None)
        scores[str(name)] = score if score is None or weight in (None, 1) else (score, weight)
    return scores


def _columns(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    known = {name: value for name, value in row.items() if name.startswith(prefix) and value is not None}
    return {name.removeprefix(prefix): value for name, value in known.items()}


def is_same(one: Any, other: Any) -> bool:
    """Say whether two recorded values are the same, as two that are no number are; never of what is nested too deep.

    Fractions that differ by no more than the rounding of a sum are the same.
    """
    try:
        if isinstance(one, float) and isinstance(other, float):
            return math.isclose(one, other, rel_tol=ROUNDING) or (math.isnan(one) and math.isnan(other))
        return bool(one == other)
    except RecursionError:
        return False


def values_apart(figure: Figure, one: Any, other: Any) -> tuple[str | None, str | None]:
    """Return two recorded values as texts, None for one that is not recorded; `figure` says a number.

    Numbers have four significant digits, or so many that those that differ look different.
    """
    may_need_more = any(isinstance(value, (float, tuple)) for value in (one, other)) and not is_same(one, other)
    for digits in range(DIGITS, ALL_DIGITS if may_need_more else DIGITS):
        shown = _in_words(figure, one, digits), _in_words(figure, other, digits)
        if shown[0] != shown[1]:
            return shown
    digits = ALL_DIGITS if may_need_more else DIGITS
    return _in_words(figure, one, digits), _in_words(figure, other, digits)


def _in_words(figure: Figure, value: Any, digits: int) -> str | None:
    if isinstance(value, tuple):  # a score and its weight
        return " × ".join(str(_in_words(figure, one, digits)) for one in value)
    if value is None or isinstance(value, bool):
        return None if value is None else "yes" if value else "no"
    return figure(value, digits) if isinstance(value, (int, float)) else value_text(value)


def advantage_in_words(
    figure: Figure, recorded: float | None, derived: float | None, digits: int = DIGITS
) -> str | None:
    """Return an advantage with its sign, marked where it is not recorded but derived; None where there is neither."""
    value = derived if recorded is None else recorded
    if not isinstance(value, (int, float)):
        return None
    return f"{'+' * (value > 0)}{figure(value, digits)}{' derived' * (recorded is None)}"


def advantages_apart(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> tuple[str | None, str | None, bool]:
    """Return the advantages of two rows of `trajectory_row` as texts, and whether they differ; one can be derived."""
    one, other = ((row["advantage"], row["advantage_derived"]) for row in rows)
    differs, digits = not all(map(is_same, one, other)), DIGITS
    while True:
        shown = advantage_in_words(figure, *one, digits), advantage_in_words(figure, *other, digits)
        if not differs or shown[0] != shown[1] or digits == ALL_DIGITS:
            return *shown, differs
        digits += 1


def policy_versions(row: Mapping[str, Any]) -> int | str | None:
    """Return the version of the policy that sampled a trajectory, or its first and last one: "0 – 1"."""
    first, last = row.get("policy_version"), row.get(LAST_VERSION)
    if not isinstance(first, int) or not isinstance(last, (int, float)) or last != last // 1 or last == first:
        return first
    return f"{first} – {int(last)}"


def signature(message: Mapping[str, Any]) -> Signature:
    """Return what a message says, without the ids that differ by chance."""
    calls = [call.get("function") or {} for call in message.get("tool_calls") or ()]
    return (
        str(message.get("role") or ""),
        content_text(message.get("content")),
        str(message.get("reasoning_content") or message.get("reasoning") or ""),
        *((str(call.get("name")), str(call.get("arguments"))) for call in calls),
    )


def same_messages(left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]) -> int:
    """Return how many messages two conversations have in common at their beginning."""
    same = 0
    for one, other in zip(left, right, strict=False):
        if signature(one) != signature(other):
            break
        same += 1
    return same


def prompts_in_words(numbers: Sequence[int | None], keys: Sequence[str | None]) -> str:
    """Return whether two trajectories answer the same prompt, by its numbers and keys; "" where one's is not known."""
    if None in numbers:
        return ""
    if numbers[0] == numbers[1]:
        return "same prompt"
    return "different prompts, in the same words" if keys[0] == keys[1] else "different prompts"


def rules_in_words(numbers: Sequence[int], rules: Sequence[str]) -> list[str]:
    """Return the success rules of two trajectories of these numbers in a sentence, or in two where they differ."""
    if rules[0] == rules[1]:
        return [f"Success: {rules[0]}."]
    return [f"Success of trajectory {number}: {rule}." for number, rule in zip(numbers, rules, strict=True)]


def parting(left: str, right: str) -> int:
    """Return after how many characters two texts part, moved back to the beginning of a word."""
    differing = (place for place, (one, other) in enumerate(zip(left, right, strict=False)) if one != other)
    place = next(differing, min(len(left), len(right)))
    for back in range(min(WORD, place)):
        if left[place - back - 1].isspace():
            return place - back
    return place
