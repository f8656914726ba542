"""Properties of every selection, on made-up indexes and on made-up files."""

from __future__ import annotations

import random
import tempfile
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltracer_sqlite.export import DifficultyFilter
from rltracer_sqlite.export.draws import draw, weighted
from tests.export_runs import chosen, export, indexed, inspect, rollout, spec, uids
from tests.index_factory import make_index

Row = dict[str, Any]
UNHURRIED = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "step": st.integers(0, 4),
            "prompt": st.sampled_from("abcd"),
            "env": st.sampled_from(["math", "code"]),
            "reward": st.sampled_from([None, 0.0, 0.0, 1.0, 1.0]),
            "tool_calls": st.integers(0, 5),
            "group": st.sampled_from([None, "g1", "g2"]),
        }
    ),
    min_size=1,
    max_size=40,
)
PREFERENCES = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["sft", "sft", "rl"]),
        "acceptance": st.sampled_from(["any", "correct", "incorrect"]),
        "window_size": st.sampled_from([None, 1, 2, 3]),
        "per_prompt": st.sampled_from([None, 1, 2, 3]),
        "unique_prompts": st.booleans(),
        "global_per_prompt": st.sampled_from([None, None, 1, 3]),
        "tool_call_sampling_power": st.sampled_from([0.0, 0.0, 1.5]),
        "seed": st.integers(0, 3),
        "rl_from_trace": st.just(True),
    }
)
BOUNDS = st.sampled_from([(None, None), (0.25, 0.75), (0.5, None), (None, 0.5), (1.0, 1.0)])


def made(folder: Path, rows: list[Row], seed: int | None = None) -> Path:
    """Write an index of rows, in another order for another seed; ids and group ids then differ as well."""
    named = [{**row, "uid": f"u{number}"} for number, row in enumerate(rows)]
    if seed is not None:
        random.Random(seed).shuffle(named)
    return make_index(folder / f"{seed}.sqlite", named)


def eligible(rows: list[Row], wanted: Row, low: float | None, high: float | None) -> dict[Any, list[str]]:
    """Return the candidates of each unit, worked out the plain way."""
    origin = min(row["step"] for row in rows)
    size = wanted["window_size"]
    window = [(row["step"] - origin) // size if size else 0 for row in rows]
    group = [(w, row["env"], row["prompt"]) for w, row in zip(window, rows, strict=True)]
    outcomes: dict[Any, list[bool]] = defaultdict(list)
    for key, row in zip(group, rows, strict=True):
        if row["reward"] is not None:
            outcomes[key].append(row["reward"] >= 1)
    found: dict[Any, list[str]] = defaultdict(list)
    for number, (key, row) in enumerate(zip(group, rows, strict=True)):
        rate = sum(outcomes[key]) / len(outcomes[key]) if outcomes[key] else None
        success = None if row["reward"] is None else row["reward"] >= 1
        accepted = {"any": True, "correct": success is True, "incorrect": success is False}[wanted["acceptance"]]
        if accepted and DifficultyFilter(low, high).accepts(rate):
            unit = (key[0], key[2]) if wanted["mode"] == "rl" else key
            found[unit].append(f"u{number}")
    return found


@given(ROWS, PREFERENCES, BOUNDS, st.integers(0, 100))
@UNHURRIED
def test_every_selection(rows: list[Row], wanted: Row, bounds: tuple[Any, Any], order: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        database = made(Path(name), rows)
        preferences = {**wanted, "difficulty": DifficultyFilter(*bounds)}
        units = eligible(rows, wanted, *bounds)
        told = inspect(spec(database), **preferences)
        found = chosen(spec(database), **preferences)
        check_counts(found, units, wanted)
        check_funnel(told, len(rows), len(found))
        assert told["eligible_prompt_groups"] == len(units)
        assert found == chosen(spec(made(Path(name), rows, order)), **preferences)
        if found:
            check_target(database, preferences, units, 1 + order % len(found), len(found))


def check_counts(found: list[str], units: dict[Any, list[str]], wanted: Row) -> None:
    """Every candidate at most once, each unit within its quota and as full as it can be, prompts as rare as asked."""
    assert len(found) == len(set(found))
    assert set(found) <= {uid for candidates in units.values() for uid in candidates}
    quota = 1 if wanted["mode"] == "rl" else wanted["per_prompt"]
    most = 1 if wanted["unique_prompts"] else wanted["global_per_prompt"]
    by_prompt: Counter[str] = Counter()
    full: Counter[str] = Counter()
    for unit, candidates in units.items():
        taken = len(set(found) & set(candidates))
        allowed = len(candidates) if quota is None else min(quota, len(candidates))
        assert taken <= allowed
        by_prompt[unit[-1]] += taken
        full[unit[-1]] += allowed
    for prompt, taken in by_prompt.items():
        assert taken == (full[prompt] if most is None else min(most, full[prompt]))


def check_funnel(told: Row, available: int, selected: int) -> None:
    """The stages add up, from everything there is to what is selected."""
    steps = told["funnel"]
    assert steps[0] == {"stage": "available", "left": available, "dropped": 0}
    assert all(step["dropped"] == before["left"] - step["left"] >= 0 for before, step in pairwise(steps))
    assert steps[-1]["left"] == told["selected_count"] == selected
    assert sum(window["trace_count"] for window in told["windows"]) == available
    assert sum(window["selected_count"] for window in told["windows"]) == selected
    assert sum(told["selected_tool_call_distribution"]["counts"].values()) == selected


def check_target(database: Path, preferences: Row, units: dict[Any, list[str]], target: int, available: int) -> None:
    """A target is met exactly, from what there is without it, and no unit gets a second before all have a first."""
    whole = chosen(spec(database), **preferences)
    found = chosen(spec(database), target_count=target, **preferences)
    assert len(found) == target
    assert set(found) <= set(whole)
    counts = [(len(set(found) & set(unit)), len(set(whole) & set(unit))) for unit in units.values()]
    highest = max(count for count, _ in counts)
    assert all(count >= min(highest - 1, most) for count, most in counts)
    with pytest.raises(ValueError, match=f"{available:,} available"):
        chosen(spec(database), target_count=available + 1, **preferences)


@given(
    st.lists(st.tuples(st.integers(1, 2), st.sampled_from("abc"), st.booleans()), min_size=1, max_size=12),
    st.sampled_from([1, 2, None]),
)
@settings(max_examples=8, deadline=None)
def test_no_row_is_lost_or_repeated_between_select_and_write(
    plan: list[tuple[int, str, bool]], per_prompt: int | None
) -> None:
    steps: dict[int, list[Row]] = {}
    for number, (step, prompt, passed) in enumerate(plan):
        steps.setdefault(step, []).append(rollout(f"t{number}", prompt, passed=passed))
    with tempfile.TemporaryDirectory() as name:
        database = indexed(Path(name), steps)
        wanted = chosen(spec(database), acceptance="any", per_prompt=per_prompt)
        rows = export(spec(database), Path(name) / "out.jsonl", acceptance="any", per_prompt=per_prompt)
        assert sorted(uids(rows)) == wanted


@given(st.lists(st.text(max_size=8), unique=True, min_size=1, max_size=20), st.integers(0, 9))
@settings(max_examples=50, deadline=None)
def test_a_draw_depends_on_nothing_but_seed_run_step_and_id(uids: list[str], seed: int) -> None:
    drawn = draw(seed, "run", 3, uids)
    assert drawn == [draw(seed, "run", 3, [uid])[0] for uid in uids]
    assert all(len(one) == 8 for one in drawn)


def test_the_draw_is_that_of_the_reference() -> None:
    from hashlib import sha256

    assert draw(17, "run", 3, ["abc"]) == [sha256(b"17:run:3:abc").digest()[:8]]


def test_a_weighted_draw_takes_in_proportion_to_its_weights() -> None:
    counts: Counter[int] = Counter()
    for seed in range(4000):
        drawn = draw(seed, "run", 1, ["a", "b", "c"])
        counts[min(zip(weighted(drawn, (1, 3, 6), 1.0), (1, 3, 6), strict=True))[1]] += 1
    # A standard deviation of these shares is at most 0.008.
    assert [counts[calls] / 4000 for calls in (1, 3, 6)] == pytest.approx([0.1, 0.3, 0.6], abs=0.025)


def test_no_call_weighs_like_one() -> None:
    none, one, two = weighted([b"\x7f" * 8] * 3, [0, 1, 2], 2.0)
    assert none == one > two
    assert len(set(weighted([b"\x7f" * 8] * 3, [0, 1, 9], 0.0))) == 1


@pytest.mark.parametrize("drawn", [b"\0" * 8, b"\xff" * 8])
def test_the_ends_of_a_draw_have_logarithms(drawn: bytes) -> None:
    assert all(isinstance(key, float) for key, _ in weighted([drawn] * 3, [0, 1, 10**9], 0.5))
