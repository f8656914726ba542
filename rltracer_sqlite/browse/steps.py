"""The steps of one run by its files, and whether there is anything new in them to be read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..index.plan import find_jobs
from ..sources.base import Shard, Source
from ..sources.places import base_folder

ALL_STEPS = "all"
NO_STEP = "none"


@dataclass
class StepFiles:
    """The files of a step; `step` is None for files whose records say of which step they are, or that have none."""

    step: int | None
    files: int = 0
    bytes: int = 0
    splits: set[str] = field(default_factory=set)


def run_steps(source: Source, root: Path) -> list[StepFiles]:
    """Return the steps of a run in their order, files without a step last. Opens no file."""
    base, steps = base_folder(root), dict[int | None, StepFiles]()
    for shard in source.shards(root):
        found = steps.setdefault(shard.step, StepFiles(shard.step))
        found.files += 1
        if shard.split:
            found.splits.add(shard.split)
        try:
            found.bytes += os.stat(base / shard.file, follow_symlinks=False).st_size
        except OSError:
            continue  # it has just gone
    return sorted(steps.values(), key=lambda found: (found.step is None, found.step or 0))


def needs_reading(connection: sqlite3.Connection, source: Source, root: Path, step: str) -> bool:
    """Say whether the files of a step hold anything that the index has not read. `step` is as in `step_key`."""
    run = connection.execute("select id from runs where root = ?", (str(root.resolve()),)).fetchone()
    if run is None:
        return True
    return bool(find_jobs(connection, run[0], root, _chosen(source.shards(root), step)))


def _chosen(shards: Iterable[Shard], step: str) -> list[Shard]:
    return [shard for shard in shards if not shard.aside and is_wanted(shard.step, step)]


def is_wanted(number: int | None, step: str) -> bool:
    """Say whether a shard of this step is read when `step` is asked for; one that does not tell its step always is."""
    return step == ALL_STEPS or number is None or number == parse_step(step)


def step_key(step: int | None) -> str:
    """Return a step as it stands in an address."""
    return NO_STEP if step is None else str(step)


def parse_step(text: str) -> int | None:
    """Return the step that an address means, None for files without one. Raises ValueError."""
    if text == NO_STEP:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ValueError("not a step")
    return int(text)
