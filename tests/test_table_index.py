"""A table's run in the shared index: rows, groups, repeated reads, and reading back through the adapter."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.adapter import IndexedAdapter
from rltracer_sqlite.model import RLTracer
from rltracer_sqlite.sources import source_for
from tests.indexing import index, rows, value
from tests.table_answers import verl
from tests.table_rows import CONTEXT, Row, write_lines, write_parquet
from tests.table_samples import SAMPLES


@contextmanager
def adapter(root: Path, database: Path) -> Iterator[IndexedAdapter]:
    opened = IndexedAdapter(source_for(root), root, database)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture(params=SAMPLES)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, list[Row]]:
    name, write = SAMPLES[request.param]
    if name == "trl":
        pytest.importorskip("pyarrow")
    (tmp_path / "run").mkdir()
    return name, tmp_path / "run", write(tmp_path / "run")


def test_every_row_is_indexed_once(run: tuple[str, Path, list[Row]], tmp_path: Path) -> None:
    name, root, written = run
    database = tmp_path / "index.sqlite"
    index(database, root)
    found = rows(database, "select reward, step, split, content_kind from trajectories order by id")
    assert sorted(found, key=repr) == sorted(((r.reward, r.step, r.split, r.kind) for r in written), key=repr)
    assert value(database, "select source from runs") == name
    again = index(database, root)
    assert (again.read_bytes, again.read_shards) == (0, 0)
    assert value(database, "select count(*) from trajectories") == len(written)


def test_steps_prompts_and_trajectories_can_be_walked(run: tuple[str, Path, list[Row]], tmp_path: Path) -> None:
    _, root, written = run
    with adapter(root, tmp_path / "index.sqlite") as opened:
        tracer = RLTracer(opened)
        loaded = [
            reference.load()
            for step in tracer.steps()
            for group in step.prompts()
            for reference in group.trajectories()
        ]
    said = [json.dumps(trajectory.messages, sort_keys=True) for trajectory in loaded]
    assert sorted(said) == sorted(json.dumps(row.messages, sort_keys=True) for row in written)


def test_named_rewards_and_values_are_columns(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    SAMPLES["trl-text"][1](tmp_path / "run")
    database = tmp_path / "index.sqlite"
    index(database, tmp_path / "run")
    paths = dict(rows(database, "select path, column_name from fields"))
    assert (paths["rewards.correct.score"], paths["rewards.format.score"]) == ("reward_correct", "reward_format")
    assert rows(database, "select reward_correct, reward_format from trajectories order by line") == [
        (1.0, None),
        (0.0, None),
        (1.0, 0.5),
    ]


def test_rows_that_files_repeat_are_counted_once_and_told(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    made: list[dict[str, Any]] = [
        {
            "step": 1,
            "prompt": CONTEXT,
            "completion": [{"role": "assistant", "content": f"{n}, as said before. " * 3}],
            "r": 1.0,
        }
        for n in range(4)
    ]
    later = [{**row, "step": 2} for row in made]
    root, database = tmp_path / "run", tmp_path / "index.sqlite"
    write_parquet(root / "completions_00001.parquet", made[:3])
    write_parquet(root / "completions_00002.parquet", later[1:4])  # two of the old rows, and a new one
    write_parquet(root / "completions_00003.parquet", later[0:1])  # equal to a row of the first file, by chance
    index(database, root)
    assert rows(database, "select step, count(*) from trajectories group by step") == [(1, 3), (2, 1), (3, 1)]
    told = "2 rows from here on repeat the end of completions_00001.parquet, the file before this one, and are counted"
    assert rows(database, "select reason from problems") == [(f"{told} once",)]


def test_a_rewritten_file_replaces_its_rows_and_keeps_their_ids(tmp_path: Path) -> None:
    root, database = tmp_path / "run", tmp_path / "index.sqlite"
    verl(root)
    index(database, root)
    before = rows(database, "select uid, id from trajectories order by uid")
    path = root / "rollouts" / "3.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    write_lines(path, *({**line, "score": 0.25} for line in lines[:1]))
    os.utime(path, ns=(1, 1))
    done = index(database, root)
    assert done.removed == 1
    assert rows(database, "select uid, id from trajectories order by uid") == before[:1] + before[1 - len(before) :][1:]
    assert value(database, "select reward from trajectories where step = 3") == 0.25


def test_several_systems_in_one_index_share_the_prompt(tmp_path: Path) -> None:
    database = tmp_path / "index.sqlite"
    for name in ("verl", "ms-swift", "nemo-rl", "skyrl", "areal", "roll-rlvr"):
        SAMPLES[name][1](tmp_path / name)
        index(database, tmp_path / name)
    asked = (
        "select p.key, count(distinct g.run_id) from prompts p join prompt_groups g on g.prompt_id = p.id group by 1"
    )
    assert [count for _, count in rows(database, asked)] == [6]


def test_files_of_something_else_are_left_aside_with_a_reason(tmp_path: Path) -> None:
    root, database = tmp_path / "run", tmp_path / "index.sqlite"
    SAMPLES["skyrl"][1](root)
    write_lines(root / "dumped_evals" / "eval_only" / "other.jsonl", {"loss": 1})
    done = index(database, root)
    assert list(done.others) == ["SkyRL's metrics over whole evaluations, not samples"]
    assert done.aside["dumped_evals/eval_only/other.jsonl"].startswith("no rollouts here: no column input_prompt")


def test_a_step_of_which_a_rewritten_file_leaves_nothing_is_listed_as_one_that_was_read(tmp_path: Path) -> None:
    root = tmp_path / "run"
    SAMPLES["skyrl"][1](root)
    SAMPLES["skyrl"][1](tmp_path / "other")
    (tmp_path / "other/dumped_evals/global_step_8_evals").rename(root / "dumped_evals/global_step_9_evals")
    index(tmp_path / "x.sqlite", root)
    (root / "dumped_evals/global_step_8_evals/d.jsonl").write_text("{broken\n")
    for name in ("x.sqlite", "fresh.sqlite"):
        index(tmp_path / name, root)
        of_step = "select split, trajectories, indexed_at is null from steps where step = 8"
        assert rows(tmp_path / name, of_step) == [(None, 0, 0)]
