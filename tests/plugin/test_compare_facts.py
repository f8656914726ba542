"""The facts of the page of comparison: what differs is never called the same, and looks different."""

from __future__ import annotations

import pytest
from datasette.app import Datasette

from datasette_rltracer.facts_beside import MOST_DIFFERING, MOST_SAME, expected_beside, facts_beside
from rltracer_sqlite.trajectory import Trajectory
from tests.areal_rows import write_areal
from tests.indexing import index
from tests.layouts.records import message, tool_call, trace

from .conftest import TRACES, get, write_run
from .html import words

COMPARE = "/-/rltracer/run/compare?a=1&b=2"
SAID = [message("user", "How many?"), message("assistant", "Three.")]
ADVANTAGES = {"advantage": None, "advantage_derived": None}


@pytest.mark.asyncio
async def test_a_span_of_policy_versions_is_not_its_first_one(tmp_path):
    index(tmp_path / "run.sqlite", write_areal(tmp_path / "run", [(0, 0), (0, 1)]))
    page = words(await get(Datasette([str(tmp_path / "run.sqlite")]), COMPARE))
    assert "policy version 0 0 – 1" in page
    assert "metrics that are the same: original_reward: 10" in page


@pytest.mark.asyncio
async def test_rewards_of_records_that_cannot_be_read_have_the_names_of_their_run(tmp_path):
    """Names that SQL takes for one have a column each, of which the second has a number."""
    for name in ("format", "Format"):
        write_run(tmp_path / name, [trace(SAID, rewards={name: {"score": 0.5, "weight": 1.0}}) for _ in range(2)])
        index(tmp_path / "run.sqlite", tmp_path / name)
        (tmp_path / name / TRACES).unlink()
    datasette = Datasette([str(tmp_path / "run.sqlite")])
    for path, status in ((f"{COMPARE.partition('?')[0]}?a=3&b=4", 404), ("/-/rltracer/run/trajectory/3", 404)):
        page = words(await get(datasette, path, status))
        assert "Format" in page, path
        assert "format_2" not in page, path


@pytest.mark.asyncio
async def test_rewards_and_metrics_that_differ_have_a_row_and_the_others_are_listed(serve_traces):
    sides = [
        trace(
            SAID,
            rewards={"ok": {"score": 1.0, "weight": weight}, "form": {"score": 1.0, "weight": 1.0}},
            metrics={"a": 1, "deep": {"b": number}, "c": [], **({"only": ""} if weight == 0.5 else {})},
        )
        for weight, number in ((0.5, 0.12345), (0.25, 0.12346))
    ]
    page = words(await get(serve_traces(sides), COMPARE))
    assert "named rewards that differ ok 1 × 0.5 1 × 0.25 metrics that differ deep.b 0.12345 0.12346" in page
    assert "only empty not recorded" in page
    assert "named rewards that are the same: form: 1 metrics that are the same: a: 1 · c: empty" in page


@pytest.mark.asyncio
async def test_hundreds_of_metrics_are_bounded(serve_traces):
    many = [{**{f"same_{n}": 1 for n in range(200)}, **{f"m_{n}": n + add for n in range(300)}} for add in (0, 1)]
    page = await get(serve_traces([trace(SAID, metrics=one) for one in many]), COMPARE)
    assert f"metrics that differ, {MOST_DIFFERING} of 300" in words(page)
    assert page.count('<th scope="row">m_') == MOST_DIFFERING
    assert f"same_{MOST_SAME - 1}: 1 and {200 - MOST_SAME} more" in words(page)


@pytest.mark.asyncio
async def test_a_record_that_cannot_be_read_is_compared_by_the_index(datasette, folder):
    (folder / "run" / TRACES).unlink()
    page = words(await get(datasette, "/-/rltracer/run/compare?a=1&b=2", 404))
    assert "named rewards that differ" in page
    assert "metrics that differ num_turns 3 not recorded" in page


@pytest.mark.asyncio
async def test_a_call_and_its_result_are_named(serve_traces):
    sides = [
        trace([SAID[0], message("assistant", tool_calls=[tool_call("c", "bash", {"command": f"echo {said}"})]),
               message("tool", said, tool_call_id="c")])
        for said in ("one", "two")
    ]  # fmt: skip
    page = words(await get(serve_traces(sides), COMPARE))
    assert "tool call bash command echo one result one" in page
    assert "tool call bash command echo two result two" in page


@pytest.mark.parametrize(
    ("column", "left", "right", "shown"),
    [
        ("logprob_mean", -0.12345, -0.12346, ("−0.12345", "−0.12346", True)),
        ("logprob_mean", 0.1 + 0.2, 0.3, ("0.3", "0.3", False)),
        ("stop_condition", "x" * 80 + " one", "x" * 80 + " two", ("…one", "…two", True)),
        ("truncated", 0, 1, ("no", "yes", True)),
        ("reward", None, 0.0, ("not recorded", "0", True)),
        ("advantage_derived", 0.5, 0.50001, ("+0.5 derived", "+0.50001 derived", True)),
        ("advantage_derived", 0.5, 0.5, ("+0.5 derived", "+0.5 derived", False)),
    ],
)  # fmt: skip
def test_facts_that_differ_look_different(column, left, right, shown):
    [fact] = facts_beside({**ADVANTAGES, column: left}, {**ADVANTAGES, column: right})
    assert fact[1:] == shown


def test_expected_answers_that_begin_alike_are_told_apart():
    sides = [Trajectory([], {"truth": "the same beginning " * 9 + end}) for end in ("left", "right")]
    assert expected_beside(*sides) == [("expected answer", "…left", "…right", True)]
