"""Preferences that cannot be meant are refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import pytest

from rltracer_sqlite.export import (
    Acceptance,
    DifficultyFilter,
    ExportError,
    ExportMode,
    ExportPreferences,
    FieldFilter,
    TraceDataExporter,
    TraceRunSpec,
)
from rltracer_sqlite.export.filters import value_at_path

REFUSED: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (ExportPreferences, {"mode": "dpo"}, "mode is 'dpo': it is one of sft, rl, preference"),
    (ExportPreferences, {"acceptance": "good"}, "one of any, correct, incorrect"),
    (ExportPreferences, {"per_prompt": 0}, "per_prompt is 0"),
    (ExportPreferences, {"target_count": -1}, "target_count is -1"),
    (ExportPreferences, {"window_size": 2.5}, "window_size is 2.5"),
    (ExportPreferences, {"window_size": 2**63}, "window_size is 9223372036854775808"),
    (ExportPreferences, {"global_per_prompt": True}, "global_per_prompt is True"),
    (ExportPreferences, {"tool_call_sampling_power": float("nan")}, "tool_call_sampling_power is nan"),
    (ExportPreferences, {"tool_call_sampling_power": -1}, "0 or more"),
    (ExportPreferences, {"reward_margin": float("inf")}, "reward_margin is inf"),
    (ExportPreferences, {"order": "shortest", "tool_call_sampling_power": 1}, "choose one"),
    (DifficultyFilter, {"min_pass_rate": 1.5}, "between 0 and 1"),
    (DifficultyFilter, {"min_difficulty": 0.5, "max_difficulty": 0.25}, "no prompt can be between"),
    (FieldFilter, {"path": ""}, "needs a path"),
    (FieldFilter, {"path": "x", "minimum": 2, "maximum": 1}, "above its maximum"),
    (FieldFilter, {"path": "x", "minimum": float("nan")}, "is none"),
    (FieldFilter, {"path": "x", "maximum": "8"}, "is none"),
    (FieldFilter, {"path": "x", "allowed_values": ([1],)}, "text, numbers or truth values"),
    (TraceRunSpec, {"path": "x", "step_start": -1}, "counted from 0"),
    (TraceRunSpec, {"path": "x", "step_end": 10**30}, "counted from 0"),
    (FieldFilter, {"path": "x", "allowed_values": (2**80,)}, "text, numbers or truth values"),
    (TraceRunSpec, {"path": "x", "step_start": 5, "step_end": 4}, "end before they begin"),
    (TraceRunSpec, {"path": "x", "split": "test"}, "train, eval, or None"),
    (TraceDataExporter, {"runs": []}, "at least one run"),
    (TraceDataExporter, {"runs": ["x"], "preferences": ExportPreferences(mode="rl")}, "rl_from_trace"),
]


@pytest.mark.parametrize(("make", "arguments", "sentence"), REFUSED)
def test_what_cannot_be_meant_is_refused(make: Callable[..., Any], arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ExportError, match=sentence):
        make(**arguments)


DEEP: list[Any] = []
for _ in range(3000):
    DEEP = [DEEP]
ODD = (DEEP, {"a": DEEP}, 10**5000, [10**5000], "x" * 10_000, b"\xff" * 10_000)
CHOICES: list[tuple[Callable[..., Any], str]] = [
    *((ExportPreferences, one.name) for one in fields(ExportPreferences)),
    *((DifficultyFilter, one.name) for one in fields(DifficultyFilter)),
    *((partial(FieldFilter, "x"), name) for name in ("minimum", "maximum", "allowed_values")),
    *((partial(TraceRunSpec, "x"), name) for name in ("step_start", "step_end", "split")),
]


@pytest.mark.parametrize(("make", "name"), CHOICES, ids=[name for _, name in CHOICES])
@pytest.mark.parametrize("value", ODD, ids=["deep", "deep-object", "digits", "list-of-digits", "text", "bytes"])
def test_any_value_is_refused_in_a_short_sentence(make: Callable[..., Any], name: str, value: Any) -> None:
    if name == "allowed_values" and isinstance(value, list):
        value = [value]
    with pytest.raises(ExportError) as refused:
        make(**{name: value})
    assert len(str(refused.value)) < 400


def test_names_and_members_both_choose() -> None:
    assert ExportPreferences(mode=ExportMode.RL, acceptance=Acceptance.ANY) == ExportPreferences("rl", "any")


@pytest.mark.parametrize(
    ("bounds", "rate", "kept"),
    [
        ({}, None, True),
        ({}, 0.3, True),
        ({"min_pass_rate": 0.25}, 0.25, True),
        ({"max_pass_rate": 0.25}, 0.25, True),
        ({"min_pass_rate": 0.25, "min_difficulty": 0.5}, 0.3, False),
        ({"max_difficulty": 1.0}, None, False),
    ],
)
def test_bounds_are_inclusive_and_all_hold(bounds: dict[str, float], rate: float | None, kept: bool) -> None:
    assert DifficultyFilter(**bounds).accepts(rate) is kept


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"a": {"b": 1}}, 1),
        ({"a.b": 2}, 2),
        ({"a": {}}, None),
        ({"a": 5}, None),
        ({"a": [1]}, None),
        ({}, None),
    ],
)
def test_the_value_at_a_path(record: dict[str, Any], expected: Any) -> None:
    assert value_at_path(record, "a.b") == expected


def test_preferences_are_told_as_json() -> None:
    import json

    preferences = ExportPreferences(field_filters=(FieldFilter("x", allowed_values=(1, "a")),))
    told = json.loads(json.dumps(preferences.as_json()))
    assert (told["mode"], told["acceptance"]) == ("sft", "correct")
    assert told["field_filters"][0]["allowed_values"] == [1, "a"]
