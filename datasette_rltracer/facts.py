"""The facts beside a trajectory: rewards, metrics, shape, time and place, each as recorded or said to be missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rltracer_sqlite.comparison import DERIVED_FROM, policy_versions
from rltracer_sqlite.recorded_values import EMPTY, flat, is_empty

from .figures import counted, instant, number
from .trained import unlisted_words

MOST_FACTS = 60  # of one section; the raw record has all
LONGEST_VALUE = 300


@dataclass(frozen=True)
class Section:
    """A heading and its (name, value) pairs; a value of None is not recorded. `left_out` more are not shown."""

    title: str
    facts: list[tuple[str, str | None]]
    left_out: int = 0


def sections(row: Mapping[str, Any], metadata: Mapping[str, Any] | None) -> list[Section]:
    """Return the sections for a row of the index and, where its record could be read, the record's metadata."""
    known = metadata if metadata is not None else _from_row(row)
    found = [
        _section("Rewards", _rewards(known.get("rewards"), row["reward"])),
        _section("Metrics", _flat(known.get("metrics"))),
        _section("Shape", _shape(row, known)),
        _section("Time", _time(row, known.get("timing"))),
        _section("Training", _training(row)),
        _section("Info", _besides_advantage(known.get("info"), row["advantage"])),
    ]
    return [section for section in found if section.facts]


def _section(title: str, facts: Iterator[tuple[str, str | None]]) -> Section:
    listed = list(facts)
    return Section(title, listed[:MOST_FACTS], max(len(listed) - MOST_FACTS, 0))


def _from_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the index keeps of a record that cannot be read."""
    recorded: dict[str, dict[str, Any]] = {"reward_": {}, "metric_": {}, "info_": {}}
    for column, value in row.items():
        for prefix, values in recorded.items():
            if column.startswith(prefix) and value is not None:
                values[column.removeprefix(prefix)] = value
    rewards = {name: {"score": value, "weight": None} for name, value in recorded["reward_"].items()}
    return {"rewards": rewards, "metrics": recorded["metric_"], "info": recorded["info_"]}


def _rewards(rewards: Mapping[str, Any] | None, total: object) -> Iterator[tuple[str, str | None]]:
    for name, reward in (rewards or {}).items():
        score, weight = (reward.get("score"), reward.get("weight")) if isinstance(reward, Mapping) else (reward, None)
        shown = _value(score)
        yield str(name), shown if shown is None or weight is None else f"{shown} × {_value(weight)}"
    yield "total", _value(total)


def _shape(row: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    yield "turns", number(row["turns"])
    yield "tool calls", number(row["tool_calls"])
    if tools := metadata.get("tools"):
        yield "tools", _value(", ".join(map(str, tools)))
    yield "branches", number(row["branches"])
    yield "prompt tokens", number(row["prompt_tokens"])
    yield "completion tokens", number(row["completion_tokens"])
    logprobs = metadata.get("logprobs") or {}
    mean = logprobs.get("mean", row["logprob_mean"])
    count = f" over {counted(logprobs['count'], 'token')}" if logprobs.get("count") else ""
    yield "mean logprob", None if mean is None else f"{number(mean)}{count}"
    if logprobs.get("min") is not None:
        yield "lowest logprob", number(logprobs["min"])
    yield "stopped", _value(row["stop_condition"])
    yield "truncated", _flag(row["truncated"])


def _training(row: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    if row["advantage"] is None:  # one that is known stands in the headline
        is_derived = row["advantage_derived"] is not None
        yield ("derived advantage", DERIVED_FROM) if is_derived else ("advantage", None)
    unlisted = unlisted_words(row, row["split"])
    is_in = f"not recorded: {unlisted}" if unlisted else _flag(row["effective"])
    yield "kept by its evaluation" if row["split"] == "eval" else "in a training batch", is_in
    yield "policy version", _value(policy_versions(row))
    for name in ("dispatch_step", "ship_step"):
        if row[name] is not None and row[name] != row["step"]:
            yield name.replace("_", " "), _value(row[name])
    if row["agent"] is not None:
        yield "agent", _value(row["agent"])


def _besides_advantage(info: object, advantage: object) -> Iterator[tuple[str, str | None]]:
    """Yield what a record says of itself, apart from the advantage that the index has from there."""
    is_same = advantage is not None and isinstance(info, Mapping) and info.get("advantage") == advantage
    yield from (fact for fact in _flat(info) if not (is_same and fact[0] == "advantage"))


def _time(row: Mapping[str, Any], timing: Any) -> Iterator[tuple[str, str | None]]:
    yield "started", instant(row["started_at"])
    seconds = row["seconds"]
    yield "took", None if seconds is None else f"{_value(seconds)} s"
    for name, value in _flat(timing):
        if name.split(".")[-1] not in ("start", "end", "start_time"):
            yield name, value


def _flat(values: object) -> Iterator[tuple[str, str | None]]:
    """Yield (dotted path, value) of what a nested dictionary holds, of a list how many values it has."""
    for name, value in flat(values):
        if isinstance(value, (list, Mapping)) and value:
            yield name, counted(len(value), "value")
        else:
            yield name, _time_of(name, value) or _value(value)


def _time_of(name: str, value: object) -> str | None:
    """Return a number that is named a time, and is one of this century, as a date and time; else None."""
    is_time = re.search(r"(?:^|[._])(?:time|timestamp|at)$", name)
    return instant(value) if is_time and isinstance(value, (int, float)) and 1e9 <= value < 4e9 else None


def _flag(value: object) -> str | None:
    return None if value is None else number(bool(value))


def _value(value: object) -> str | None:
    if value is None or isinstance(value, (bool, int, float)):
        return number(value)
    if is_empty(value):
        return EMPTY
    text = str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({number(len(text))} characters)"
