"""Lines of a trace file as they are scanned, and as they are loaded by way of an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rltracer_sqlite.adapter import open_run
from rltracer_sqlite.sources.base import Entry, Problem, Scanned, Shard
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from rltracer_sqlite.trajectory import Trajectory
from tests.indexing import index, rows
from tests.layouts import append, line, message

FILE = "rollouts/step_1/train/all/traces.jsonl"
SHARD = Shard(FILE, FILE, "traces", 1, "train")
SAID = [message("system", "be brief"), message("user", "6 * 7?"), message("assistant", "42")]


def replaced(record: dict[str, Any], name: str, odd: bytes) -> bytes:
    """Return the line of a record in which one value is other bytes."""
    return line({**record, name: "@odd@"}).replace(b'"@odd@"', odd)


def scanned(tmp_path: Path, *lines: bytes, shard: Shard = SHARD) -> list[Scanned]:
    append(tmp_path / shard.file)
    (tmp_path / shard.file).write_bytes(b"".join(lines))
    return list(PrimeRLSource().scan(tmp_path, shard))


def only_entry(tmp_path: Path, data: bytes) -> tuple[Entry, list[str]]:
    found = scanned(tmp_path, data)
    [entry] = [part for part in found if isinstance(part, Entry)]
    return entry, [part.reason for part in found if isinstance(part, Problem)]


def loaded(tmp_path: Path, *lines: bytes) -> list[Trajectory]:
    append(tmp_path / "run" / FILE)
    (tmp_path / "run" / FILE).write_bytes(b"".join(lines))
    index(tmp_path / "x.sqlite", tmp_path / "run")
    adapter = open_run(tmp_path / "x.sqlite")
    try:
        ids = rows(tmp_path / "x.sqlite", "select id from trajectories order by byte_offset, item")
        return [adapter.load_trajectory(identity) for (identity,) in ids]
    finally:
        adapter.close()
