"""The definitions: pass@k against enumeration, intervals, windows, bins and success rules."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltracer_sqlite.index.database import open_for_writing
from rltracer_sqlite.passrates import (
    PASS_BINS,
    SuccessRule,
    SuccessRuleError,
    estimate_mean,
    estimate_rate,
    parse_rule,
    pass_at_k,
    pass_bin,
    pass_rate,
    success_column,
    wilson_interval,
    window_steps,
)

from .index_factory import make_index

COUNTS = st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


def share_of_draws_with_a_success(scored, successes, k):
    draws = list(combinations(range(scored), k))
    return Fraction(sum(min(draw) < successes for draw in draws), len(draws))


@pytest.mark.parametrize("scored", range(1, 13))
def test_pass_at_k_is_the_share_of_all_draws(scored):
    for successes in range(scored + 1):
        for k in range(1, scored + 1):
            assert pass_at_k(scored, successes, k) == float(share_of_draws_with_a_success(scored, successes, k))


@pytest.mark.parametrize(("scored", "k"), [(0, 1), (3, 4), (7, 8)])
def test_pass_at_k_needs_k_trajectories(scored, k):
    assert pass_at_k(scored, 0, k) is None


@pytest.mark.parametrize(("scored", "successes", "k"), [(4, 5, 1), (4, -1, 1), (4, 2, 0), (4, 2, -1)])
def test_pass_at_k_refuses_nonsense(scored, successes, k):
    with pytest.raises(ValueError, match="not defined"):
        pass_at_k(scored, successes, k)


@given(COUNTS, st.integers(1, 59))
def test_pass_at_k_grows_with_k(count, k):
    scored, successes = count
    smaller, larger = pass_at_k(scored, successes, k), pass_at_k(scored, successes, k + 1)
    assert larger is None or smaller <= larger <= 1


@pytest.mark.parametrize(
    ("successes", "size", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (1, 100, 0.0018, 0.0545)],
)
def test_wilson_interval(successes, size, low, high):
    assert wilson_interval(successes / size, size) == pytest.approx((low, high), abs=5e-5)


@given(st.lists(COUNTS, min_size=1, max_size=20))
def test_interval_holds_the_rate(counts):
    found = estimate_rate(counts)
    assert found.mean == sum(c for _, c in counts) / sum(n for n, _ in counts)
    assert 0 <= found.low <= found.mean <= found.high <= 1
    assert found.prompts == len(counts)


def test_prompts_that_differ_widen_the_interval():
    alike, unlike = estimate_rate([(8, 4)] * 10), estimate_rate([(8, 0), (8, 8)] * 5)
    assert alike.mean == unlike.mean == 0.5
    assert (alike.low, alike.high) == pytest.approx(wilson_interval(0.5, 80))
    # Ten prompts that are all or nothing tell as much as nine trials: their variance has 9 degrees of freedom.
    assert (unlike.low, unlike.high) == pytest.approx(wilson_interval(0.5, 9))


def test_one_prompt_tells_little_about_others():
    assert estimate_rate([(8, 4)]).low == pytest.approx(wilson_interval(0.5, 1)[0])


@pytest.mark.parametrize("estimate", [estimate_rate([]), estimate_rate([(0, 0)]), estimate_mean([], 0)])
def test_nothing_scored_has_no_estimate(estimate):
    assert (estimate.mean, estimate.low, estimate.high, estimate.prompts) == (None, None, None, 0)


@given(st.lists(st.tuples(st.just(8), st.integers(0, 8)), min_size=1, max_size=12))
def test_mean_of_rates_agrees_where_all_prompts_weigh_the_same(counts):
    mean = estimate_mean([c / n for n, c in counts], sum(n for n, _ in counts))
    rate = estimate_rate(counts)
    assert (mean.mean, mean.low, mean.high) == pytest.approx((rate.mean, rate.low, rate.high))


@pytest.mark.parametrize(
    ("window", "first", "size", "steps"),
    [
        (0, 1, 40, (1, 40)),
        (1, 1, 40, (41, 80)),
        (0, 0, 10, (0, 9)),
        (0, 3, None, (3, None)),
        (None, 1, 5, (None, None)),
    ],
)
def test_windows(window, first, size, steps):
    assert window_steps(window, first, size) == steps


def test_bins_are_exact_at_their_edges():
    labels = [pass_bin(8, successes) for successes in range(9)]
    assert labels == ["0", "0–0.25", "0.25–0.5", "0.25–0.5", "0.5–0.75", "0.5–0.75", "0.75–1", "0.75–1", "1"]
    assert pass_bin(0, 0) is None
    assert pass_rate(0, 0) is None


@given(COUNTS)
def test_every_rate_is_in_the_bin_whose_conditions_it_meets(count):
    rate = pass_rate(*count)
    compare = {"exact": rate.__eq__, "gt": rate.__gt__, "gte": rate.__ge__, "lt": rate.__lt__}
    met = [bin.label for bin in PASS_BINS if all(compare[name](float(value)) for name, value in bin.conditions)]
    assert met == [pass_bin(*count)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("rewards.reward.score >= 0.5", SuccessRule("rewards.reward.score", 0.5)),
        ("reward>=-1e-3", SuccessRule("reward", -0.001)),
        ("metrics.correct", SuccessRule("metrics.correct", 1.0)),
        ("rewards.right format.score >= 1", SuccessRule("rewards.right format.score", 1.0)),
        ("rewards.a >= b.score>=1234567.5", SuccessRule("rewards.a >= b.score", 1234567.5)),
    ],
)
def test_rules(text, rule):
    assert parse_rule(text) == rule
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        ">= 1",
        "reward > 1",
        "reward = 1",
        "reward >= nan",
        "reward >= inf",
        "a b",
        "a >= b >= 1 2",
        "a >>= 1",
        "x >= y",
    ],
)
def test_rules_that_cannot_be_read(text):
    with pytest.raises(SuccessRuleError):
        parse_rule(text)


def test_column_of_a_path(tmp_path):
    path = make_index(tmp_path / "run.sqlite", [{"reward": 1, "rewards.format.score": 0.5, "metrics.num_turns": 3}])
    connection = open_for_writing(path)
    assert success_column(connection, "reward") == "reward"
    assert success_column(connection, "rewards.format.score") == "reward_format"
    assert success_column(connection, "metrics.num_turns") == "metric_num_turns"
    with pytest.raises(SuccessRuleError, match=r"similar: rewards\.format\.score"):
        success_column(connection, "rewards.fromat.score")
    with pytest.raises(SuccessRuleError, match=r"similar: reward($|, (?!reward($|,)))"):
        success_column(connection, "rewrd")
    connection.execute("update fields set kind = 'text' where path = 'metrics.num_turns'")
    with pytest.raises(SuccessRuleError, match="not as a number"):
        success_column(connection, "metrics.num_turns")
    connection.close()
