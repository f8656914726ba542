"""Every mean reward, pass rate and share that is told, beside avg() over the trajectories that it is said to be of."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltracer_sqlite import list_runs
from rltracer_sqlite.analysis import Selection, analyse_run
from rltracer_sqlite.charts import Filters, describe_rows, find_span, plan_query, provide_square_root, read_rows
from rltracer_sqlite.index.among import Among
from rltracer_sqlite.index.lists import group_facts, numbers_of_prompts, run_facts, step_facts
from rltracer_sqlite.index.over_steps import groups_of_prompts
from rltracer_sqlite.index.ranked import ranked_prompts
from rltracer_sqlite.index.statistics import apply_success
from rltracer_sqlite.unrecorded import NOT_RECORDED
from tests.commands import rltracer
from tests.index_factory import make_index

# What is recorded of a trajectory does not hang together: one can have a score without a reward, a reward without a
# score, or neither, as an episode that failed before any agent ran.
ROW = st.fixed_dictionaries(
    {
        "run": st.sampled_from(["a", "a", "b"]),
        "step": st.sampled_from([3, 4, 7, 8, 14, None]),
        "split": st.sampled_from(["train", "train", "eval", None]),
        "env": st.sampled_from(["math", "code", "x y", None]),
        "prompt": st.sampled_from(["p", "q", "r"]),
        "group": st.sampled_from([None, "g"]),
        "reward": st.sampled_from([None, -0.75, 0.0, 0.1, 1.0]),
        "metrics.right": st.sampled_from([None, None, 0.0, 1.0]),
        "rewards.form.score": st.sampled_from([None, 0.25, 0.5]),
        "completion_tokens": st.sampled_from([None, 10, 900]),
        "truncated": st.sampled_from([None, 0, 1]),
        "ok": st.sampled_from([None, 0, 1]),
        "error_type": st.sampled_from([None, None, "Timeout"]),
    }
)
RULE = ("metrics.right", 1.0)
GENERATED = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
AMONG = [
    Among(split, env) for split in (None, "train", "eval", NOT_RECORDED) for env in (None, "math", "code", NOT_RECORDED)
]
OF_WINDOW = "(:window is null and step is null or (step - :first) / :size = :window)"


@contextmanager
def index_of(rows: list[dict[str, Any]]) -> Iterator[sqlite3.Connection]:
    with (
        TemporaryDirectory() as folder,
        closing(sqlite3.connect(make_index(Path(folder) / "x.sqlite", rows, RULE))) as connection,
    ):
        provide_square_root(connection)
        yield connection


def plain(connection: sqlite3.Connection, value: str, where: str = "1", **given: Any) -> Any:
    """Return an expression over the trajectories that a condition, and the names that are given, choose."""
    named = " and ".join([f"({where})", *(f"{name} is :{name}" for name in given if f":{name}" not in where)])
    return connection.execute(f"select {value} from trajectories where {named}", given).fetchone()[0]


def value_of(asked: str) -> str | None:
    return None if asked == NOT_RECORDED else asked


def told(connection: sqlite3.Connection, sql: str, given: Any = ()) -> list[dict[str, Any]]:
    cursor = connection.execute(sql, given)
    return [dict(zip([column[0] for column in cursor.description], row, strict=True)) for row in cursor]


def is_plain(connection: sqlite3.Connection, fact: dict[str, Any], where: str = "1", **given: Any) -> None:
    """Compare whatever a row tells with its plain expression."""
    expressions = {
        "reward_mean": "avg(reward)", "rewarded": "count(reward)", "pass_rate": "avg(success)",
        "scored": "count(success)", "trajectories": "count(*)", "successes": "ifnull(sum(success), 0)",
        "tokens_mean": "avg(completion_tokens)",
        "truncated": "sum(truncated)", "errors": "sum(ok = 0 or error_type is not null)",
    }  # fmt: skip
    for name in expressions.keys() & fact.keys():
        expected = plain(connection, expressions[name], where, **given)
        assert fact[name] == (None if expected is None else pytest.approx(expected, abs=1e-12)), name


def runs_of(connection: sqlite3.Connection) -> list[int]:
    return [run for (run,) in connection.execute("select id from runs")]


@GENERATED
@given(st.lists(ROW, min_size=1, max_size=60))
def test_lists_and_tables(rows: list[dict[str, Any]]) -> None:
    with index_of(rows) as connection:
        for table in ("steps", "step_summary", "prompt_groups", "prompt_pass_rates"):
            for fact in told(connection, f"select * from {table}"):
                keys = {name: fact[name] for name in ("run_id", "step", "split", "env") if name in fact}
                group = {"group": fact["id"]} if table == "prompt_groups" else {}
                prompt = {"prompt": fact["prompt_id"]} if table == "prompt_pass_rates" else {}
                of_prompt = "prompt_group_id in (select id from prompt_groups where prompt_id = :prompt)"
                where = "prompt_group_id = :group" if group else of_prompt if prompt else "1"
                is_plain(connection, fact, where, **keys, **group, **prompt)
        for run in runs_of(connection):
            for among in AMONG:
                chosen = {name: value_of(asked) for name, asked in among.given.items()}
                for fact in step_facts(connection, run, among):
                    is_plain(connection, fact, run_id=run, **{**chosen, "step": fact["step"], "split": fact["split"]})
                of_prompt = "prompt_group_id in (select id from prompt_groups where prompt_id = :prompt)"
                for step in (3, 4, 7, 8, 14, None):
                    for fact in group_facts(connection, run, step, among).values():
                        keys = {**chosen, "split": fact["split"], "prompt": fact["prompt_id"]}
                        is_plain(connection, fact, of_prompt, run_id=run, step=step, **keys)
                numbers = numbers_of_prompts(connection, run, None, among)
                for fact in groups_of_prompts(connection, run, numbers, among):
                    keys = {**chosen, "split": fact["split"], "step": fact["step"], "prompt": fact["prompt_id"]}
                    is_plain(connection, fact, of_prompt, run_id=run, **keys)
                for fact in ranked_prompts(connection, run, 100, among)[0]:
                    keys = {"split": fact["split"], "env": fact["env"], "prompt": fact["prompt_id"]}
                    is_plain(connection, fact, of_prompt, run_id=run, **keys)


@GENERATED
@given(st.lists(ROW, min_size=1, max_size=60))
def test_runs(rows: list[dict[str, Any]]) -> None:
    with index_of(rows) as connection:
        for among in AMONG:
            for fact in run_facts(connection, among):
                of_env = {} if among.env is None else {"env": value_of(among.env)}
                if not fact.pop("trajectories"):  # of all splits
                    assert fact["reward_mean"] is fact["pass_rate"] is None
                    continue
                is_plain(connection, fact, run_id=fact["run_id"], split=fact["split"], **of_env)
        [(_, _, path)] = connection.execute("pragma database_list").fetchall()
        for run in list_runs(path):
            is_plain(
                connection, {"reward_mean": run.reward_mean, "rewarded": run.rewarded}, run_id=run.id, split=run.split
            )
        before = [fact["reward_mean"] for fact in run_facts(connection)]
        connection.execute("update runs set success_path = 'metrics.unknown'")
        for run_id in runs_of(connection):
            apply_success(connection, run_id)
        connection.commit()
        after = run_facts(connection)
        assert [fact["reward_mean"] for fact in after] == pytest.approx(before, abs=1e-12)  # added up in another order
        assert {fact["scored"] for fact in after} == {0}


@GENERATED
@given(st.lists(ROW, min_size=1, max_size=60))
def test_pages(rows: list[dict[str, Any]]) -> None:
    from datasette_rltracer.overview_page import _listed, runs_query
    from datasette_rltracer.run_queries import list_queries

    with index_of(rows) as connection:
        query = runs_query()
        for run in told(connection, query.sql, query.parameters):
            for split, successes, scored, count, rewarded, reward in _listed(run["splits"]):
                fact = {"successes": successes, "scored": scored, "trajectories": count, "rewarded": rewarded}
                fact["reward_mean"] = reward
                is_plain(connection, fact, "ifnull(split, '') = :named", run_id=run["id"], named=split)
            for step, rate, reward in _listed(run["curve"]):  # so few steps are a point each
                fact = {"pass_rate": rate, "reward_mean": reward}
                is_plain(connection, fact, run_id=run["id"], step=step, split=run["split"])
            queries = list_queries(run["id"])
            for name in ("envs", "steps"):
                for fact in told(connection, queries[name].sql, queries[name].parameters):
                    keys = {name: fact[name] for name in ("step", "split", "env") if name in fact}
                    is_plain(connection, fact, run_id=run["id"], **keys)


@GENERATED
@given(st.lists(ROW, min_size=1, max_size=60), st.sampled_from([1, 2, 5]), st.sampled_from(["", "math", NOT_RECORDED]))
def test_charts_and_windows(rows: list[dict[str, Any]], size: int, env: str) -> None:
    with index_of(rows) as connection:
        for run in runs_of(connection):
            span, of_env = find_span(connection, run), {"env": value_of(env)} if env else {}

            def drawn(
                chart: str, run: int = run, span: Any = span, of_env: Any = of_env
            ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
                for row in read_rows(connection, plan_query(chart, Filters(run, env=env, window=size), span)):
                    steps = {"low": row["step_first"], "high": row["step_last"]}
                    yield row, {"run_id": run, "split": row["split"], **steps, **of_env}

            within = "step between :low and :high"
            for row, where in drawn("reward"):
                assert row["mean"] == pytest.approx(plain(connection, f"avg({row['name']})", within, **where))
                assert row["trajectories"] == plain(connection, f"count({row['name']})", within, **where)
            for row, where in drawn("pass_rate"):
                is_plain(connection, {name: row[name] for name in ("pass_rate", "scored")}, within, **where)
            for row, where in drawn("length"):
                assert row["turns"] == plain(connection, "avg(turns)", within, **where)
                assert row["completion_tokens"] == plain(connection, "avg(completion_tokens)", within, **where)
            for row, where in drawn("failures"):
                for name, value in (("truncated", "truncated"), ("error", "ok = 0 or error_type is not null")):
                    expected = [plain(connection, f"{f}({value})", within, **where) for f in ("count", "sum", "avg")]
                    assert [row[f"{name}_known"] or 0, row[f"{name}_count"], row[name]] == pytest.approx(expected)
            first = plain(connection, "min(step)", run_id=run)
            windows = told(connection, "select * from window_summary where window_size = ? and run_id = ?", (size, run))
            asked = {"first": first, "size": size, "run_id": run}
            for fact in windows:
                keys = {name: fact[name] for name in ("window", "split", "env")}
                is_plain(connection, fact, OF_WINDOW, **keys, **asked)
            for summary in analyse_run(connection, run, Selection(window=size)).windows:
                keys = {"window": summary.window, "split": summary.split}
                if summary.env is not None:
                    keys["env"] = value_of(summary.env)
                fact = {name: getattr(summary, name) for name in ("scored", "rewarded", "reward_mean")}
                fact["pass_rate"] = summary.pass_rate.mean
                is_plain(connection, fact, OF_WINDOW, **keys, **asked)


def test_windows_in_the_terminal_are_those_of_the_page_or_say_so(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = rltracer("plot", demo / "x.sqlite", "histogram", is_terminal=True).stdout
    assert [f"steps {first}–{first + 1}" in shown for first in (1, 3, 5, 7)] == [True] * 4
    assert "to fit" not in shown
    long = make_index(tmp_path / "x.sqlite", [{"step": step, "reward": 1.0} for step in range(1, 62)])
    shown = rltracer("plot", long, "reward", is_terminal=True).stdout
    assert "  In windows of 5 steps, to fit; its page has single steps (--window 1)." in shown
    assert "step 61 " in shown


def test_the_chart_of_failures_says_of_how_many(demo: Path) -> None:
    with closing(sqlite3.connect(demo / "x.sqlite")) as connection:
        said = describe_rows(
            "failures", read_rows(connection, plan_query("failures", Filters(1), find_span(connection, 1)))
        )
        cut, known = connection.execute(
            "select sum(truncated), count(truncated) from trajectories where split = 'train'"
        ).fetchone()
    assert said.startswith("Share of the trajectories that record it. ")
    assert f"; {cut} of {known} over all steps." in said
