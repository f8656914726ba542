"""The index of a run that grows in pieces is the index of the whole run, and consistent all the way."""

from __future__ import annotations

import shutil
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

from rltracer_sqlite.index import migrations
from rltracer_sqlite.sources.base import SourceError
from tests.indexing import index

from ..invariants import patched
from ..scratch import scratch
from ..target import Target
from .traces import WORDS, trace_seeds

EVERYTHING = """
    select t.uid, s.path, t.byte_offset, t.byte_length, t.item, t.step, t.split, t.env, t.reward, t.success,
        t.turns, p.key,
        g.trajectories, g.pass_rate, t.effective, t.advantage
    from trajectories t join shards s on s.id = shard_id join prompt_groups g on g.id = t.prompt_group_id
    join prompts p on p.id = g.prompt_id order by t.uid
"""
STEPS = "select step, split, trajectories, prompt_groups, scored, successes from steps order by step, split"


statements = cache(migrations.statements)  # the schema is the same each time, and splitting it takes milliseconds


def check(data: bytes) -> None:
    """Index two files whole, and in two pieces: the same rows, and every bad record in `problems`."""
    folder, content = scratch("index"), data[1:]
    cut = len(content) * (data[0] if data else 0) // 255
    for name in ("whole", "grown"):
        shutil.rmtree(folder / name, ignore_errors=True)
    with patched(migrations, statements=statements):
        whole = _index(folder / "whole", content)
        _index(folder / "grown", content[:cut])
        grown = _index(folder / "grown", content)
    assert grown == whole


def _index(folder: Path, content: bytes) -> Any:
    file = folder / "run" / "step_1" / "train" / "all" / "traces.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    database = folder / "run.sqlite"
    try:
        index(database, folder / "run")
    except SourceError as error:
        assert str(error)
        return None
    assert sorted(folder.iterdir()) == [folder / "run", database]  # no journal is left
    connection = sqlite3.connect(database)
    try:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        assert connection.execute("pragma foreign_key_check").fetchall() == []
        return [connection.execute(question).fetchall() for question in (EVERYTHING, STEPS)]
    finally:
        connection.close()


TARGETS = {
    "index": Target("index", "a run indexed in pieces equals one indexed whole", check, trace_seeds, "json", WORDS)
}
