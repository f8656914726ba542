"""The facts beside a trajectory: numbers to read, and nothing missing shown as zero."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest

from datasette_rltracer.facts import MOST_FACTS, brief, counted, instant, moment, number, sections
from datasette_rltracer.trajectory_context import offered_tools, recorded_errors


def row(**values):
    return defaultdict(lambda: None, values)


def facts(found, title):
    return next(dict(section.facts) for section in found if section.title == title)


@pytest.mark.parametrize(
    ("count", "what", "said"),
    [
        (1, "step", "1 step"),
        (0, "step", "0 steps"),
        (1, "trajectory", "1 trajectory"),
        (2000, "trajectory", "2,000 trajectories"),
        (1, ("step", "steps and splits"), "1 step"),
        (2, ("step", "steps and splits"), "2 steps and splits"),
    ],
)
def test_one_is_no_plural(count, what, said):
    assert counted(count, what) == said


@pytest.mark.parametrize(
    ("kept", "shown"),
    [("2026-11-29T19:58:57Z", "2026-11-29 19:58 UTC"), ("yesterday", "yesterday"), ("<2026-11-29T19:58:57Z>", None)],
)
def test_a_kept_time_is_shown_as_it_is_read(kept, shown):
    assert moment(kept) == (shown or kept)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (0, "0"),
        (-0.0, "0"),
        (1234567, "1,234,567"),
        (-0.41, "−0.41"),
        (0.123456, "0.1235"),
        (1.0, "1"),
        (123456.0, "123,456"),
        (True, "yes"),
        (math.nan, "nan"),
        (-math.inf, "−inf"),
        (1 << 20_000, "an integer of 20,001 bits"),
    ],
    ids=lambda value: value if isinstance(value, str) else "number",
)
def test_numbers(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.9, "0.900"),
        (0.0373, "0.037"),
        (1.125, "1.125"),
        (-0.0, "0.000"),
        (-0.5, "−0.500"),
        (0.00012, "0.00012"),
        (20.0, "20.0"),
        (523.375, "523.4"),
        (1234.6, "1,235"),
        (3, "3"),
        (math.inf, "inf"),
        (None, None),
    ],
    ids=str,
)
def test_numbers_of_a_column(value, shown):
    assert brief(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "1970-01-01 00:00:00 UTC"), (1e300, None), (math.nan, None), ("now", None), (None, None), (-1e12, None)],
)
def test_instants(seconds, shown):
    assert instant(seconds) == shown


def test_what_is_missing_is_none_and_never_zero():
    found = sections(row(), {"rewards": {}, "metrics": {}})
    assert facts(found, "Rewards") == {"total": None}
    assert set(facts(found, "Shape").values()) == {None}
    assert "Metrics" not in [section.title for section in found]


def test_rewards_are_shown_with_their_weights():
    rewards = {"a": {"score": 1.0, "weight": 0.25}, "b": {"score": None, "weight": 1.0}, "c": 0.5}
    found = sections(row(reward=0.75), {"rewards": rewards})
    assert facts(found, "Rewards") == {"a": "1 × 0.25", "b": None, "c": "0.5", "total": "0.75"}


def test_the_row_stands_in_for_a_record_that_cannot_be_read():
    found = sections(row(reward_a=0.5, metric_n=3, info_level="hard"), None)
    assert facts(found, "Rewards")["a"] == "0.5"
    assert facts(found, "Metrics") == {"n": "3"}
    assert facts(found, "Info") == {"level": "hard"}


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("dispatch.time", 1_780_002_030, "2026-05-28 21:00:30 UTC"),
        ("started_at", 1_780_002_030.5, "2026-05-28 21:00:30 UTC"),
        ("time", 2.5, "2.5"),
        ("lifetime", 1_780_002_030, "1,780,002,030"),
        ("timestamp", "today", "today"),
        ("note", "", "empty"),
    ],
)
def test_times_and_empty_texts_are_said(name, value, shown):
    *path, last = name.split(".")
    info = {path[0]: {last: value}} if path else {last: value}
    assert facts(sections(row(), {"info": info}), "Info") == {name: shown}


def test_nested_values_are_flat_and_bounded():
    deep = {"a": 1}
    for _ in range(1000):
        deep = {"d": deep}
    found = sections(row(), {"metrics": {"a": {"b": 1, "c": [1, 2]}, **{f"m{n}": n for n in range(100)}}, "info": deep})
    metrics = next(section for section in found if section.title == "Metrics")
    assert metrics.facts[:2] == [("a.b", "1"), ("a.c", "2 values")]
    assert (len(metrics.facts), metrics.left_out) == (MOST_FACTS, 102 - MOST_FACTS)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        ({"type": "A", "message": "b"}, "A", "b"),
        ({"error": "A", "error_chain_str": "b"}, "A", "b"),
        ("plain", "error", "plain"),
        ({"message": {"deep": 1}}, "error", '{\n  "deep": 1\n}'),
        (7, "error", "7"),
    ],
)
def test_errors_in_any_form(error, kind, message):
    [shown] = recorded_errors([error])
    assert (shown.type, shown.message.text) == (kind, message)


@pytest.mark.parametrize("tool", [{"function": {"name": "sh"}}, {"type": "x"}, {}])
def test_offered_tools_in_any_form(tool):
    [(name, definition)] = offered_tools([tool])
    assert name
    assert definition.text
