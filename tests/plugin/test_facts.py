"""The facts beside a trajectory: as recorded, and nothing missing shown as zero."""

from __future__ import annotations

from collections import defaultdict

import pytest

from datasette_rltracer.facts import MOST_FACTS, sections
from datasette_rltracer.trajectory_context import offered_tools, recorded_errors


def row(**values):
    return defaultdict(lambda: None, values)


def facts(found, title):
    return next(dict(section.facts) for section in found if section.title == title)


def test_what_is_missing_is_none_and_never_zero():
    found = sections(row(), {"rewards": {}, "metrics": {}})
    assert facts(found, "Rewards") == {"total": None}
    assert set(facts(found, "Shape").values()) == {None}
    assert "Metrics" not in [section.title for section in found]


def test_rewards_are_shown_with_their_weights():
    rewards = {"a": {"score": 1.0, "weight": 0.25}, "b": {"score": None, "weight": 1.0}, "c": 0.5}
    found = sections(row(reward=0.75), {"rewards": rewards})
    assert facts(found, "Rewards") == {"a": "1 × 0.25", "b": None, "c": "0.5", "total": "0.75"}


def test_an_advantage_that_is_not_recorded_is_the_one_that_its_group_gives():
    shown = [facts(sections(row(advantage_derived=value), {}), "Training") for value in (-0.5, None)]
    assert shown[0]["derived advantage"] == "the reward minus the mean of its prompt group"
    assert "advantage" not in shown[0]
    assert shown[1]["advantage"] is None
    assert "advantage" not in facts(sections(row(advantage=0.5), {}), "Training")


@pytest.mark.parametrize(("split", "said"), [("train", "in a training batch"), ("eval", "kept by its evaluation")])
def test_an_evaluation_is_never_in_a_training_batch(split, said):
    shown = facts(sections(row(effective=1, split=split), {}), "Training")
    assert (shown[said], "in a training batch" in shown) == ("yes", split == "train")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"layout": "traces"}, "not recorded: not in the effective batch's file, which may yet be written"),
        ({"layout": "traces", "effective": 1}, "yes"),
        ({"layout": "file"}, None),
    ],
)
def test_what_is_in_no_batch_is_said_to_be_in_none_yet(values, said):
    assert facts(sections(row(split="train", **values), {}), "Training")["in a training batch"] == said


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
        ("list", [], "empty"),
        ("object", {}, "empty"),
    ],
)
def test_times_and_empty_texts_are_said(name, value, shown):
    *path, last = name.split(".")
    info = {path[0]: {last: value}} if path else {last: value}
    assert facts(sections(row(), {"info": info}), "Info") == {name: shown}


def test_a_span_of_policy_versions_is_told():
    assert facts(sections(row(policy_version=0, info_tail_version=1.0), {}), "Training")["policy version"] == "0 – 1"
    assert facts(sections(row(policy_version=1, info_tail_version=1.0), {}), "Training")["policy version"] == "1"


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
