"""Indexes that nobody made with rltracer-index: every export of them ends with a sentence or with rows."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import ExportError, FieldFilter
from rltracer_sqlite.export.runs import open_runs
from rltracer_sqlite.index.database import IndexFileError
from rltracer_sqlite.sources.base import SourceError
from tests.export_runs import chosen, export, funnel, indexed, inspect, rollout, spec
from tests.index_factory import make_index

LARGEST = 2**63 - 1
ROWS = [
    {"uid": f"u{n}", "prompt": "ab"[n % 2], "reward": float(n % 3 == 0), "step": n % 3 + 1, "tool_calls": n % 4}
    for n in range(12)
]
CHANGES = [
    "update trajectories set reward = 9e999 where id % 2",
    "update trajectories set reward = -9e999",
    "update trajectories set uid = cast(x'ff80' as text) where id = 3",
    "update trajectories set uid = 'a\"b' || char(10) || char(0) || ''';--' where id = 3",
    f"update trajectories set tool_calls = {LARGEST}",
    f"update trajectories set tool_calls = -{LARGEST}",
    f"update prompt_groups set step = {LARGEST} where id = 1; update prompt_groups set step = -{LARGEST} where id = 2",
    f"update prompt_groups set scored = {LARGEST}, successes = {LARGEST}",
    f"update prompt_groups set trajectories = {LARGEST}",
    "update trajectories set prompt_group_id = null",
    "update trajectories set shard_id = 999",
    f"update trajectories set byte_offset = {LARGEST}, byte_length = {LARGEST}",
    "update shards set path = '../../etc/passwd'",
    "update shards set path = 'a' || char(0) || 'b'",
    "update runs set root = char(0)",
    "update fields set column_name = 'x\"; drop table runs; --' where path = 'reward'",
    "delete from prompts",
    "drop table fields",
    "alter table trajectories rename to t2; create view trajectories as select * from t2",
    "alter table prompts rename to p2; create table prompts as select * from p2",
]
PREFERENCES: list[dict[str, Any]] = [
    {"target_count": 2, "window_size": 1, "acceptance": "any"},
    {"acceptance": "any", "per_prompt": None, "window_size": 3},
    {"tool_call_sampling_power": 2.0, "unique_prompts": True},
    {"mode": "preference"},
    {"mode": "rl", "rl_from_trace": True, "order": "shortest"},
    {"field_filters": (FieldFilter("reward", minimum=0.1),)},
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_hostile_index_is_a_sentence(tmp_path: Path, change: str) -> None:
    database = make_index(tmp_path / "x.sqlite", ROWS)
    connection = sqlite3.connect(database)
    connection.executescript(change)
    connection.close()
    for preferences in PREFERENCES:
        for act in (lambda **given: inspect(spec(database), **given),
                    lambda **given: export(spec(database), tmp_path / "o.jsonl", **given)):  # fmt: skip
            with suppress(ExportError, SourceError, IndexFileError):  # anything else is no sentence
                act(**preferences)
    assert {path.name for path in tmp_path.iterdir()} <= {"x.sqlite", "o.jsonl", "o.jsonl.summary.json"}


@pytest.mark.parametrize("made", ["view", "table"])
def test_what_only_looks_like_a_table_of_an_index_is_refused(tmp_path: Path, made: str) -> None:
    database = make_index(tmp_path / "x.sqlite", ROWS)
    connection = sqlite3.connect(database)
    connection.executescript(f"alter table trajectories rename to t2; create {made} trajectories as select * from t2")
    connection.close()
    with pytest.raises(IndexFileError, match="trajectories"):
        inspect(spec(database))


def test_infinite_rewards_stand_in_no_pair(tmp_path: Path) -> None:
    rewards = [float("inf"), 1.0, 0.0, float("-inf")]
    database = make_index(tmp_path / "x.sqlite", [{"uid": f"u{n}", "reward": one} for n, one in enumerate(rewards)])
    told = inspect(spec(database), mode="preference")
    assert (funnel(told)["reward known"], funnel(told)["difficulty"], told["selected_count"]) == (2, 2, 1)


def test_what_is_not_known_to_be_effective_is_dropped_at_its_stage(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a")]})
    assert chosen(spec(database), effective_only=True) == []
    assert funnel(inspect(spec(database), effective_only=True))["effective"] == 0


def test_a_difficulty_is_told_of_pairs_as_well(tmp_path: Path) -> None:
    from rltracer_sqlite.export import DifficultyFilter

    rows = [{"uid": f"u{n}", "prompt": "ab"[n % 2], "reward": float(n < 3)} for n in range(8)]
    database = make_index(tmp_path / "x.sqlite", rows)  # a passes two of four, b one of four
    told = inspect(spec(database), mode="preference", difficulty=DifficultyFilter(min_pass_rate=0.5))
    stages = funnel(told)
    assert (stages["reward known"], stages["difficulty"], stages["in a pair (chosen passed)"]) == (8, 4, 4)


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), ValueError("enough")], ids=["Ctrl-C", "a visitor that left"])
def test_a_long_statement_is_stopped_by_what_progress_raises(tmp_path: Path, stop: BaseException) -> None:
    from rltracer_sqlite.export.scratch import Scratch

    def progress(doing: str, done: int, total: int) -> None:
        raise stop

    database = make_index(tmp_path / "x.sqlite", ROWS)
    [run] = open_runs([spec(database)])
    endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n"
    scratch = Scratch(progress)
    with pytest.raises(type(stop)), scratch.index_errors(run):
        scratch.attach(run).execute(endless)
    scratch.close()
