"""What a trajectory's record says about it besides its messages: rewards, metrics, completion, timing, errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...model import Message
from ..base import Locator
from .entries import LIMITS, integer, number


def metadata(
    trace: dict[str, Any],
    outer: dict[str, Any],
    branches: list[list[Message]],
    locators: Sequence[Locator],
    annotations: list[tuple[Locator, dict[str, Any]]],
) -> dict[str, Any]:
    """Return `Trajectory.metadata`. A value that is not recorded is None."""
    info = _dictionary(trace.get("info"))
    rewards = named_rewards(trace)
    return {
        "uid": locators[0].uid,
        "env": _env(trace, outer, info),
        "agent": _dictionary(trace.get("agent")).get("name"),
        "task": trace.get("task") or outer.get("task"),
        "reward": total_reward(trace, rewards),
        "rewards": rewards,
        "metrics": _metrics(trace),
        "info": info,
        "advantage": number(trace.get("advantage", info.get("advantage"))),
        "logprobs": logprob_summary(trace),
        "tool_calls": sum(len(message.get("tool_calls", ())) for message in _distinct(trace, branches)),
        "completion": _completion(trace, branches),
        "timing": trace.get("timing"),
        "errors": _errors(trace, outer),
        "locator": _place(locators[0]),
        "annotations": [_place(locator) | {"producer": locator.producer} for locator, _ in annotations],
    }


def named_rewards(trace: dict[str, Any]) -> dict[str, dict[str, float | None]]:
    """Return {name: {"score", "weight"}}; a weight that is not recorded counts as 1."""
    named = {}
    for name, recorded in _dictionary(trace.get("rewards")).items():
        score = recorded.get("score") if isinstance(recorded, dict) else recorded
        weight = recorded.get("weight") if isinstance(recorded, dict) else None
        named[str(name)] = {"score": number(score), "weight": 1.0 if weight is None else number(weight)}
    return named


def total_reward(trace: dict[str, Any], rewards: dict[str, dict[str, float | None]]) -> float | None:
    """Return the recorded total, else Σ score × weight; None as soon as one score is missing."""
    if "reward" in trace:
        return number(trace["reward"])
    products = [
        None if reward["score"] is None or reward["weight"] is None else reward["score"] * reward["weight"]
        for reward in rewards.values()
    ]
    known = [product for product in products if product is not None]
    return sum(known) if known and len(known) == len(products) else None


def logprob_summary(trace: dict[str, Any]) -> dict[str, float | int] | None:
    """Return mean, minimum and count of the sampled tokens' logprobs; None where none are recorded."""
    values = [
        finite
        for node in trace.get("nodes") or ()
        if isinstance(node, dict) and isinstance(node.get("logprobs"), list)
        for value in node["logprobs"]
        if (finite := number(value)) is not None
    ]
    return {"mean": sum(values) / len(values), "min": min(values), "count": len(values)} if values else None


def _completion(trace: dict[str, Any], branches: list[list[Message]]) -> dict[str, Any]:
    calls = [call for call in trace.get("calls") or () if isinstance(call, dict)]
    holders = [holder for holder in [*calls, *_nodes(trace)] if isinstance(holder.get("usage"), dict)]
    usages = [holder["usage"] for holder in holders]
    usage = _dictionary(trace.get("token_usage"))
    sampled = [value for value in (number(used.get("completion_tokens")) for used in usages) if value is not None]
    stop, truncated = trace.get("stop_condition"), trace.get("is_truncated")
    reasons = [holder.get("finish_reason") for holder in [*calls] or _nodes(trace)]
    return {
        "stop_condition": stop,
        "truncated": truncated if isinstance(truncated, bool) else stop in LIMITS or "length" in reasons[-1:],
        "prompt_tokens": integer(usages[-1].get("prompt_tokens") if usages else usage.get("input_tokens")),
        "completion_tokens": integer(sum(sampled) if sampled else usage.get("output_tokens")),
        "turns": sum(message.get("role") == "assistant" for message in _distinct(trace, branches)),
    }


def _distinct(trace: dict[str, Any], branches: list[list[Message]]) -> list[dict[str, Any]]:
    """Return every message once, although branches share their beginnings."""
    nodes = _nodes(trace)
    if nodes:
        return [_dictionary(node.get("message")) | {"tool_calls": _calls(node)} for node in nodes]
    return [message for branch in branches for message in branch]


def _calls(node: dict[str, Any]) -> list[Any]:
    calls = _dictionary(node.get("message")).get("tool_calls")
    return calls if isinstance(calls, list) else []


def _nodes(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [node for node in trace.get("nodes") or () if isinstance(node, dict)]


def _metrics(trace: dict[str, Any]) -> dict[str, Any]:
    recorded = trace.get("metrics")
    if isinstance(recorded, dict):
        return recorded
    from .v0 import OWN_FIELDS

    # A row of the early versions carries its metrics flat.
    numbers = {name: value for name, value in trace.items() if isinstance(value, (bool, int, float))}
    return {name: value for name, value in numbers.items() if name not in OWN_FIELDS} if "prompt" in trace else {}


def _errors(trace: dict[str, Any], outer: dict[str, Any]) -> list[Any]:
    errors = list(trace.get("errors") or ())
    if trace.get("error"):
        errors.append(trace["error"])
    if outer is not trace:
        errors += list(outer.get("errors") or ())
    return errors


def _env(trace: dict[str, Any], outer: dict[str, Any], info: dict[str, Any]) -> str | None:
    env = outer.get("env")
    named = env.get("name") or env.get("id") if isinstance(env, dict) else env
    return trace.get("env_name") or info.get("env_name") or named or info.get("env_id")


def _place(locator: Locator) -> dict[str, Any]:
    return {
        "path": locator.path,
        "line": locator.line,
        "byte_offset": locator.byte_offset,
        "byte_length": locator.byte_length,
        "item": locator.item,
    }


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
