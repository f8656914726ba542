"""What two trajectories are compared by: the facts of both, and where what they say begins to differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .messages import content_text

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
DERIVED = "A derived advantage is the reward minus the mean of its prompt group."
WORD = 40  # characters that the parting of two texts is moved back, at most, to stand between words

Signature = tuple[Any, ...]


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


def parting(left: str, right: str) -> int:
    """Return after how many characters two texts part, moved back to the beginning of a word."""
    differing = (place for place, (one, other) in enumerate(zip(left, right, strict=False)) if one != other)
    place = next(differing, min(len(left), len(right)))
    for back in range(min(WORD, place)):
        if left[place - back - 1].isspace():
            return place - back
    return place
