"""Export preferences of any values: a sentence, or rows and a summary that agree."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from rltracer_sqlite.export import (
    DifficultyFilter,
    ExportError,
    ExportPreferences,
    FieldFilter,
    TraceDataExporter,
    TraceRunSpec,
)
from rltracer_sqlite.export.filters import parse_field
from tests.export_runs import indexed, rollout

from ..scratch import scratch
from ..target import Target


@cache
def database() -> Path:
    """Return an index of a small run: two steps, three prompts, some solved."""
    steps = {
        step: [
            rollout(f"{step}{question}{number}", question, passed=(number + step) % 3 > 0, calls=number % 2)
            for question in "abc"
            for number in range(3)
        ]
        for step in (1, 2)
    }
    return indexed(scratch("preferences"), steps)


def check(data: bytes) -> None:
    """Any preferences are refused in a sentence, or select rows that the summary counts."""
    try:
        given = json.loads(data[1:])
    except (ValueError, RecursionError):
        given = {"field": data[1:].decode("utf-8", "replace")}
    if not isinstance(given, dict):
        return
    try:
        preferences = _preferences(given)
        exporter = TraceDataExporter([TraceRunSpec.from_index(database())], preferences)
        told = exporter.inspect()
        with exporter.prepared() as prepared:
            rows = b"".join(prepared.chunks()).splitlines()
            checked = prepared.summary
        with exporter.prepared() as again:
            assert b"".join(again.chunks()).splitlines() == rows
    except ExportError as error:
        assert str(error)
        return
    json.dumps([told, checked])
    assert 0 <= checked["selected_count"] <= told["available_count"] * 9
    if preferences.mode.value == "sft":
        assert len(rows) == checked["selected_count"]
    assert all(isinstance(json.loads(row), dict) for row in rows)


def _preferences(given: dict[str, Any]) -> ExportPreferences:
    known = {field.name for field in fields(ExportPreferences)} - {"difficulty", "field_filters"}
    chosen = {name: value for name, value in given.items() if name in known}
    if isinstance(bounds := given.get("difficulty"), dict):
        chosen["difficulty"] = DifficultyFilter(**{name: value for name, value in bounds.items() if name in BOUNDS})
    asked = given.get("field_filters")
    filters = [_filter(one) for one in asked if isinstance(one, dict)] if isinstance(asked, list) else []
    if isinstance(given.get("field"), str):
        filters.append(parse_field(given["field"]))
    return ExportPreferences(**chosen, field_filters=tuple(filters))


def _filter(given: dict[str, Any]) -> FieldFilter:
    return FieldFilter(**{"path": "", **{name: given[name] for name in given if name in FILTER}})


BOUNDS = ("min_pass_rate", "max_pass_rate", "min_difficulty", "max_difficulty")
FILTER = ("path", "minimum", "maximum", "allowed_values", "include_missing")


def seeds() -> list[bytes]:
    given: list[dict[str, Any]] = [
        {}, {"mode": "rl", "rl_from_trace": True}, {"mode": "preference", "acceptance": "any", "reward_margin": 0.5},
        {"difficulty": {"min_pass_rate": 0.25, "max_difficulty": 0.9}, "window_size": 1, "per_prompt": 2},
        {"field_filters": [{"path": "metrics.num_turns", "minimum": 1, "maximum": 3.5}]},
        {"field_filters": [{"path": "task.idx", "allowed_values": [0, "x", True, 0.5]}], "redact": True},
        {"global_per_prompt": 1, "target_count": 3, "unique_prompts": True, "tool_call_sampling_power": 1.5},
        {"order": "shortest", "include_provenance": True, "include_raw_trace": True, "include_tools": False},
        {"effective_only": True, "drop_truncated": True, "keep_generation_errors": True, "drop_scoring_errors": True},
        {"field": "metrics.num_turns>=2"}, {"field": "env in a,b"}, {"field": "reward 0.5..1"}, {"field": "x=1"},
    ]  # fmt: skip
    return [b"\0" + json.dumps(one).encode() for one in given]


WORDS = (
    *(field.name for field in fields(ExportPreferences)), *BOUNDS, *FILTER, "sft", "rl", "preference", "any", "correct",
    "incorrect", "shortest", "sample", "metrics.num_turns", "rewards.reward.score", "field", ">=", "<=", "..", "=",
    "in",
)  # fmt: skip
TARGETS = {"preferences": Target("preferences", "export preferences of any values", check, seeds, "json", WORDS)}
