"""Files that are cut, broken, removed and written again while they are followed: the index ends as a fresh one."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.indexing import index, rows
from tests.layouts import LAYOUTS
from tests.left_aside import KINDS
from tests.watching import watching

# What an index holds, by what it is known by: without the numbers of rows, and without times of reading.
HELD = (
    """
    select t.uid, s.path, t.byte_offset, t.byte_length, t.line, t.item, t.step, t.split, t.env, t.reward, t.success,
        t.advantage, t.effective, t.ship_step, t.gone, t.group_pass_rate, p.key, g.group_id, g.trajectories, g.scored
    from trajectories t join shards s on s.id = shard_id join prompt_groups g on g.id = t.prompt_group_id
        join prompts p on p.id = g.prompt_id
    order by t.uid
    """,
    """
    select step, split, indexed_at is null, trajectories, prompt_groups, scored, successes, round(reward_mean, 9),
        truncated, errors
    from steps order by step, split
    """,
    """
    select path, file, producer, step, split, size, head_hash, tail_hash, indexed_bytes, lines, records, problems, state
    from shards order by path
    """,
    """
    select path, line, p.byte_offset, p.byte_length, reason from problems p join shards s on s.id = shard_id
    order by path, p.byte_offset, reason
    """,
    """
    select uid, trajectory_id is null, a.producer, path, byte_offset, item from annotations a
        join shards s on s.id = shard_id
    order by uid, a.producer, path, byte_offset, item
    """,
    "select step, split, env, name, trajectories, round(total, 9) from step_values order by step, split, env, name",
    "select path, column_name, kind, trajectories from fields where trajectories > 0 order by path",
)


def held(database: Path) -> list[list[tuple[Any, ...]]]:
    return [rows(database, query) for query in HELD]


HOW = ("cut", "broken", "removed", "written again")


def disturb(
    file: Path, content: bytes, how: random.Random, ways: tuple[str, ...] = (*HOW, "removed with its folder")
) -> None:
    """Do something to a file that its writer, or whoever tidies up, might do."""
    what = how.choice(ways)
    if what == "removed":
        file.unlink(missing_ok=True)
    elif what == "removed with its folder":
        shutil.rmtree(file.parent, ignore_errors=True)
    else:
        part = content if what == "written again" else content[: how.randrange(len(content) + 1)]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(part + (b"\n{broken\n" if what == "broken" else b""))


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_whatever_was_done_to_files_the_index_is_as_a_fresh_one_in_the_end(tmp_path: Path, name: str) -> None:
    how, root, database = random.Random(name), LAYOUTS[name](tmp_path / "run").root, tmp_path / "x.sqlite"
    contents = {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
    with watching(database, root) as watch:
        watch.look()
        for _ in range(12):
            file = how.choice(list(contents))
            disturb(file, contents[file], how)
            if how.random() < 0.7:
                watch.look()
        for file, content in contents.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        for _ in range(4):
            watch.look()
    index(tmp_path / "fresh.sqlite", root)
    assert held(database) == held(tmp_path / "fresh.sqlite")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_whatever_was_done_to_files_that_are_left_aside_each_index_is_as_a_fresh_one(tmp_path: Path, kind: str) -> None:
    how, root = random.Random(kind), tmp_path / "run"
    aside = [root / name for name in KINDS[kind](root)]
    for link in filter(Path.is_symlink, aside):  # to nothing: what is disturbed here has a content
        link.unlink()
        link.write_bytes(b"not a record")
    index(tmp_path / "x.sqlite", root)
    contents = [path.read_bytes() for path in sorted(root.rglob("*")) if path.suffix == aside[0].suffix]
    for number in range(12):
        disturb(how.choice(aside), how.choice(contents), how, HOW)
        index(tmp_path / "x.sqlite", root)
        if not any(state == "gone" for (state,) in rows(tmp_path / "x.sqlite", "select state from shards")):
            index(tmp_path / f"{number}.sqlite", root)
            assert held(tmp_path / "x.sqlite") == held(tmp_path / f"{number}.sqlite")
