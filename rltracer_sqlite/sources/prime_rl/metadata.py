"""What a trajectory's record says about it besides its messages: rewards, metrics, completion, timing, errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tool_names import called_tools
from ...truth import recorded_truth
from ..base import Locator
from ..values import integer, logprob_summary, number, place_of
from .entries import LIMITS


def metadata(
    trace: dict[str, Any],
    outer: dict[str, Any],
    locators: Sequence[Locator],
    annotations: list[tuple[Locator, dict[str, Any]]],
) -> dict[str, Any]:
    """Return `Trajectory.metadata`. A value that is not recorded is None."""
    info = _dictionary(trace.get("info"))
    rewards = named_rewards(trace)
    called = [call for message in _spoken(trace) for call in _list(message.get("tool_calls"))]
    return {
        "uid": locators[0].uid,
        "env": _env(trace, outer, info),
        "agent": _dictionary(trace.get("agent")).get("name"),
        "task": task_of(trace, outer),
        "truth": truth_of(trace, outer),
        "reward": total_reward(trace, rewards),
        "rewards": rewards,
        "metrics": _metrics(trace),
        "info": info,
        "advantage": number(trace.get("advantage", info.get("advantage"))),
        "logprobs": logprob_summary(*(_list(node.get("logprobs")) for node in _nodes(trace))),
        "tool_calls": len(called),
        "tools": list(called_tools(called)),
        "completion": _completion(trace),
        "timing": trace.get("timing"),
        "errors": _errors(trace, outer),
        "locator": place_of(locators[0]),
        "annotations": [place_of(locator) | {"producer": locator.producer} for locator, _ in annotations],
    }


def task_of(trace: dict[str, Any], outer: dict[str, Any]) -> Any:
    """Return the task of a trace, or else that of its episode, as recorded."""
    return trace.get("task") or outer.get("task")


def truth_of(trace: dict[str, Any], outer: dict[str, Any]) -> Any:
    """Return the expected answer: of the task, or in a v0 row, whose task is a name, beside it. None: not recorded."""
    return recorded_truth(task_of(trace, outer), trace.get("answer"))


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
    recorded = number(trace.get("reward"))
    if recorded is not None:
        return recorded
    products = [
        None if reward["score"] is None or reward["weight"] is None else reward["score"] * reward["weight"]
        for reward in rewards.values()
    ]
    known = [product for product in products if product is not None]
    return number(sum(known)) if known and len(known) == len(products) else None


def _completion(trace: dict[str, Any]) -> dict[str, Any]:
    # A row of v0 has its usage in one place, whatever else it carries.
    is_row = not isinstance(trace.get("nodes"), list) and "prompt" in trace and "completion" in trace
    calls, nodes = [] if is_row else _dictionaries(trace.get("calls")), _nodes(trace)
    usages = _usages(calls) or _usages(nodes)
    total = _dictionary(trace.get("token_usage")) if is_row else {}
    prompt = usages[-1].get("prompt_tokens") if usages else total.get("input_tokens")
    sampled = [count for used in usages if (count := integer(used.get("completion_tokens"))) is not None]
    completion = sum(sampled) if sampled else total.get("output_tokens")
    return {
        "stop_condition": trace.get("stop_condition"),
        "truncated": _truncated(trace, calls or nodes),
        "prompt_tokens": integer(trace.get("num_input_tokens") if prompt is None else prompt),
        "completion_tokens": integer(trace.get("num_output_tokens") if completion is None else completion),
        "turns": sum(message.get("role") == "assistant" for message in _spoken(trace, sampled_only=True)),
    }


def _usages(holders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return _dictionaries([holder.get("usage") for holder in holders])


def _truncated(trace: dict[str, Any], holders: list[dict[str, Any]]) -> bool | None:
    recorded, stop = trace.get("is_truncated"), trace.get("stop_condition")
    if isinstance(recorded, bool) or not isinstance(trace.get("nodes"), list):
        return recorded if isinstance(recorded, bool) else None
    finished = holders[-1].get("finish_reason") if holders else None
    if not isinstance(stop, str) and not isinstance(finished, str):
        return None
    return (isinstance(stop, str) and stop in LIMITS) or finished == "length"


def _spoken(trace: dict[str, Any], sampled_only: bool = False) -> list[dict[str, Any]]:
    """Return each recorded message once, although branches share their beginnings; of a v0 row the completion."""
    if isinstance(trace.get("nodes"), list):
        nodes = [node for node in _nodes(trace) if not (sampled_only and node.get("sampled") is False)]
        return [_dictionary(node.get("message")) for node in nodes]
    completion = trace.get("completion")
    return [{"role": "assistant"}] if isinstance(completion, str) else _dictionaries(completion)


def _nodes(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return _dictionaries(trace.get("nodes"))


def _metrics(trace: dict[str, Any]) -> dict[str, Any]:
    recorded = trace.get("metrics")
    if isinstance(recorded, dict):
        return recorded
    from .v0 import OWN_FIELDS

    # A row of the early versions carries its metrics flat.
    numbers = {name: value for name, value in trace.items() if isinstance(value, (bool, int, float))}
    return {name: value for name, value in numbers.items() if name not in OWN_FIELDS} if "prompt" in trace else {}


def _errors(trace: dict[str, Any], outer: dict[str, Any]) -> list[Any]:
    errors = [*_list(trace.get("errors"))]
    if trace.get("error"):
        errors.append(trace["error"])
    if outer is not trace:
        errors += _list(outer.get("errors"))
    return errors


def _env(trace: dict[str, Any], outer: dict[str, Any], info: dict[str, Any]) -> str | None:
    env = outer.get("env")
    named = env.get("name") or env.get("id") if isinstance(env, dict) else env
    candidates = (trace.get("env_name"), info.get("env_name"), named, info.get("env_id"))
    return next((text for text in candidates if text and isinstance(text, str)), None)


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dictionaries(value: Any) -> list[dict[str, Any]]:
    return [element for element in _list(value) if isinstance(element, dict)]
