"""The views, the charts' queries and the Python definitions, compared on generated runs."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltracer_sqlite.analysis import Selection, analyse_run
from rltracer_sqlite.charts import Filters, find_span, plan_query, read_rows
from rltracer_sqlite.passrates import (
    WINDOW_SIZES,
    SuccessRule,
    estimate_rate,
    pass_at_k,
    pass_bin,
    pass_rate,
    window_steps,
)

from .index_factory import make_index
from .indexing import rows

ROW = st.fixed_dictionaries(
    {
        "run": st.sampled_from(["a", "b"]),
        "step": st.one_of(st.integers(0, 9), st.none()),
        "split": st.sampled_from(["train", "eval", None]),
        "env": st.sampled_from(["math", None]),
        "prompt": st.sampled_from(["p", "q", "r"]),
        "group": st.sampled_from([None, "g"]),
        "reward": st.sampled_from([None, 0.0, 0.4, 1.0]),
    }
)
RUNS = st.lists(ROW, min_size=1, max_size=40)
GENERATED = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@contextmanager
def index_of(rows):
    with TemporaryDirectory() as folder:
        path = make_index(Path(folder) / "run.sqlite", rows)
        with closing(sqlite3.connect(path)) as connection:
            connection.row_factory = sqlite3.Row
            yield connection


def window_of(step, first, size):
    """Return the number of the window that holds a step; windows begin at `first`, and no size means one for all."""
    if step is None or first is None:
        return None
    return (step - first) // size if size else 0


def counted(rows, size, threshold=1.0):
    """Return {(run, window, split, env, prompt): [trajectories, scored, successes]} from the rows themselves."""
    first = {
        run: min((r["step"] for r in rows if r["run"] == run and r["step"] is not None), default=None) for run in "ab"
    }
    counts = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        key = (row["run"], window_of(row["step"], first[row["run"]], size), row["split"], row["env"], row["prompt"])
        counts[key][0] += 1
        counts[key][1] += row["reward"] is not None
        counts[key][2] += row["reward"] is not None and row["reward"] >= threshold
    return counts, first


def run_names(connection):
    return {row["id"]: row["name"] for row in connection.execute("select id, name from runs")}


@GENERATED
@given(RUNS, st.sampled_from(WINDOW_SIZES))
def test_prompt_windows(rows, size):
    counts, first = counted(rows, size)
    with index_of(rows) as connection:
        names = run_names(connection)
        found = connection.execute("select * from prompt_windows where window_size = ?", (str(size),)).fetchall()
        assert len(found) == len(counts)
        for row in found:
            run = names[row["run_id"]]
            trajectories, scored, successes = counts[(run, row["window"], row["split"], row["env"], row["preview"])]
            assert (row["trajectories"], row["scored"], row["successes"]) == (trajectories, scored, successes)
            assert row["pass_rate"] == pass_rate(scored, successes)
            assert row["pass_bucket"] == pass_bin(scored, successes)
            assert (row["step_first"], row["step_last"]) == window_steps(row["window"], first[run], size)


@GENERATED
@given(RUNS, st.sampled_from([1, 2, 5]))
def test_window_summary(rows, size):
    counts, _ = counted(rows, size)
    expected = defaultdict(list)
    for (run, window, split, env, _), count in counts.items():
        expected[run, window, split, env].append(count)
    with index_of(rows) as connection:
        names = run_names(connection)
        found = connection.execute("select * from window_summary where window_size = ?", (size,)).fetchall()
        assert len(found) == len(expected)
        for row in found:
            prompts = expected[names[row["run_id"]], row["window"], row["split"], row["env"]]
            rates = [pass_rate(n, c) for _, n, c in prompts if n]
            assert row["prompts"] == len(prompts)
            assert row["scored"] == sum(n for _, n, _ in prompts)
            assert row["pass_rate"] == estimate_rate((n, c) for _, n, c in prompts).mean
            assert row["prompt_pass_rate"] == (pytest.approx(sum(rates) / len(rates)) if rates else None)
            assert row["prompts_all_failed"] == rates.count(0.0)
            assert row["prompts_all_passed"] == rates.count(1.0)
            assert row["prompts_unscored"] == len(prompts) - len(rates)


@GENERATED
@given(RUNS, st.sampled_from([1, 2, 5]))
def test_prompts_that_move(rows, size):
    with index_of(rows) as connection:
        for run_id in run_names(connection):
            view = connection.execute(
                "select split, env, prompt_id, window, change from prompt_changes where run_id = ? and window_size = ?",
                (run_id, size),
            )
            metrics = analyse_run(connection, run_id, Selection(window=size)).metrics
            moved = [
                (m.count.split, m.count.env, m.count.prompt_id, m.count.window, m.change) for m in metrics if m.change
            ]
            assert Counter(map(tuple, view)) == Counter(moved)


# The same in the words of its description: one after another of the windows in which a prompt is scored.
CHANGES = """
select run_id, split, env, window_size, prompt_id, preview, window_before, window, pass_rate_before, pass_rate,
    iif(pass_rate >= 0.5, 'gained', 'lost') as change
from (
    select *, lag(window) over moments as window_before, lag(pass_rate) over moments as pass_rate_before
    from prompt_windows where scored > 0 and window is not null
    window moments as (partition by run_id, window_size, split, env, prompt_id order by window)
)
where (pass_rate >= 0.5) <> (pass_rate_before >= 0.5)
order by window_size, split, env, prompt_id, window
"""


def test_the_changes_of_the_demo(demo):
    found = rows(demo / "x.sqlite", "select * from prompt_changes order by window_size, split, env, prompt_id, window")
    assert len(found) > 20
    assert found == rows(demo / "x.sqlite", CHANGES)


@GENERATED
@given(RUNS)
def test_pass_at_k_view(rows):
    with index_of(rows) as connection:
        groups = connection.execute("select distinct scored, successes from prompt_groups where scored > 0").fetchall()
        found = {
            (r["scored"], r["successes"], r["k"]): r["pass_at_k"] for r in connection.execute("select * from pass_at_k")
        }
    expected = {(n, c, k): pass_at_k(n, c, k) for n, c in groups for k in range(1, n + 1)}
    assert found == pytest.approx(expected, abs=1e-12)


@GENERATED
@given(RUNS, st.sampled_from([1, 2, 5, 200]), st.sampled_from(["", "eval"]))
def test_chart_of_pass_rates(rows, size, split):
    counts, first = counted(rows, size)
    with index_of(rows) as connection:
        for run_id, run in run_names(connection).items():
            query = plan_query("pass_rate", Filters(run_id, split=split, window=size), find_span(connection, run_id))
            expected = defaultdict(list)
            for (name, window, where, _, _), (_, scored, successes) in counts.items():
                if name == run and window is not None and scored and split in ("", where):
                    expected[where, window].append((scored, successes))
            drawn = read_rows(connection, query)
            assert len(drawn) == len(expected)
            for row in drawn:
                estimate = estimate_rate(expected[row["split"], window_of(row["step_first"], first[run], size)])
                assert (row["pass_rate"], row["low"], row["high"]) == pytest.approx(
                    (estimate.mean, estimate.low, estimate.high), abs=1e-9
                )
                assert row["prompts"] == estimate.prompts


@GENERATED
@given(RUNS, st.sampled_from([1, 5]))
def test_histogram_counts_the_rows_that_a_bar_leads_to(rows, size):
    with index_of(rows) as connection:
        for run_id in run_names(connection):
            query = plan_query(
                "histogram", Filters(run_id, split="train", window=size * 2), find_span(connection, run_id)
            )
            for bar in read_rows(connection, query):
                leads_to = connection.execute(
                    """
                    select count(*) from prompt_windows where run_id = ? and window_size = ? and split = 'train'
                        and window is ? and pass_bucket = ?
                    """,
                    (run_id, str(size * 2), bar["window"], bar["pass_bucket"]),
                ).fetchone()[0]
                assert bar["prompts"] == leads_to


@GENERATED
@given(RUNS, st.sampled_from([0.0, 0.4, 1.0]))
def test_another_rule_gives_what_the_index_would_hold(rows, threshold):
    counts, _ = counted(rows, 5, threshold)
    with index_of(rows) as connection:
        for run_id, run in run_names(connection).items():
            selection = Selection(window=5, rule=SuccessRule("reward", threshold))
            found = analyse_run(connection, run_id, selection)
            assert len(found.metrics) == len([key for key in counts if key[0] == run])
            for metric in found.metrics:
                count = metric.count
                key = (run, count.window, count.split, count.env, count.preview)
                assert [count.trajectories, count.scored, count.successes] == counts[key]
            assert len(found.unscored) == sum(row["reward"] is None and row["run"] == run for row in rows)
