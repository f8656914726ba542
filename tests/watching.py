"""A run that is followed by looks, and what an index of it holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rltracer_sqlite.index.followed import Followed
from rltracer_sqlite.index.watch import Watch
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import Source
from tests.indexing import rows
from tests.layouts import append, message, trace

ALL = "rollouts/step_1/train/all/traces.jsonl"


def record(uid: str, answer: str = "42", **extra: Any) -> dict[str, Any]:
    said = [message("user", "6 * 7?"), message("assistant", answer)]
    return trace(id=uid, messages=said, rewards={"r": 1.0}, **extra)


def at_step(step: int) -> str:
    return ALL.replace("step_1", f"step_{step}")


def finder(root: Path) -> Callable[[], Source]:
    return lambda: source_for(root)


def watching(database: Path, *roots: Path, **options: Any) -> Watch:
    return Watch(database, [Followed(root, finder(root)) for root in roots], **options)


def uids(database: Path, where: str = "1") -> list[str]:
    return [uid for (uid,) in rows(database, f"select uid from trajectories where {where} order by id")]


def linked_outside(run: Path) -> Path:
    """Return a file of step 2 that nobody reads, since it is a link to one outside the run."""
    bad, outside = run / at_step(2), run.parent / "outside.jsonl"
    bad.parent.mkdir(parents=True)
    bad.symlink_to(outside)
    append(outside, record("outside"))
    return bad
