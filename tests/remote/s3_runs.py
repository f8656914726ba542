"""A run in a bucket, and what an index of it holds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rltracer_sqlite import IndexedAdapter
from rltracer_sqlite.sources.remote import RemoteRoot
from tests.indexing import index, rows, value
from tests.layouts import line, message, trace
from tests.remote.s3_server import S3Server

ALL = "step_1/train/all/traces.jsonl"
ROOT = "s3://runs/my-run"


def record(number: int, answer: str) -> dict[str, Any]:
    messages = [message("user", "6 * 7?"), message("assistant", answer)]
    return trace(id=f"t{number}", messages=messages, rewards={"r": 1.0})


def lines(numbers: Iterable[int], answer: str = "42") -> bytes:
    return b"".join(line(record(number, answer)) for number in numbers)


def refresh(database: Path) -> Any:
    return index(database, RemoteRoot(ROOT))


def asked_bytes(s3: S3Server) -> int:
    return sum(request.bytes for request in s3.asked("GET"))


def count(database: Path) -> int:
    return int(value(database, "select count(*) from trajectories where gone = 0"))


def problems(database: Path) -> list[str]:
    return [reason for (reason,) in rows(database, "select reason from problems")]


def open_run_of(database: Path) -> IndexedAdapter:
    from rltracer_sqlite.sources.prime_rl import PrimeRLSource

    return IndexedAdapter(PrimeRLSource(), ROOT, database, refresh=False)
