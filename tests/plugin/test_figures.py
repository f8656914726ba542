"""Numbers, amounts and times as a page says them."""

from __future__ import annotations

import math

import pytest

from datasette_rltracer.figures import brief, counted, instant, mean_count, moment, number


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


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (5.0, "5.0"), (26.04, "26.0"), (0.0, "0.0"), (-0.0, "0.0"), (0.05, "0.1"), (0.04, "0.040"), (1234.5, "1,234"),
        (math.inf, "inf"), (None, None),
    ],
)  # fmt: skip
def test_means_of_counts_have_one_decimal(value, shown):
    assert mean_count(value) == shown
