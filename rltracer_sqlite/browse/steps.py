"""The steps of one run by its files, and whether there is anything new in them to be read."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..arguments import shown
from ..index.plan import find_jobs
from ..sources.base import Shard, Source
from ..sources.places import base_folder, real_place

ALL_STEPS = "all"
NO_STEP = "none"


@dataclass
class StepFiles:
    """The files of a step; `step` is None for files whose records say of which step they are, or that have none."""

    step: int | None
    files: int = 0
    bytes: int = 0
    splits: set[str] = field(default_factory=set)
    aside: Counter[str] = field(default_factory=Counter)  # why files are not read, and how many


def run_steps(source: Source, root: Path) -> list[StepFiles]:
    """Return the steps of a run in their order, files without a step last. Opens no file."""
    base, steps = base_folder(root), dict[int | None, StepFiles]()
    for shard in source.shards(root):
        found = steps.setdefault(shard.step, StepFiles(shard.step))
        found.files += 1
        if shard.split:
            found.splits.add(shard.split)
        if shard.aside:
            found.aside[shard.aside] += 1
        try:
            found.bytes += os.stat(base / shard.file, follow_symlinks=False).st_size
        except OSError:
            continue  # it has just gone
    return sorted(steps.values(), key=lambda found: (found.step is None, found.step or 0))


def set_aside(steps: Iterable[StepFiles], step: str) -> Counter[str]:
    """Return why files of a step are not read, and how many; `step` is as in `step_key`, or ALL_STEPS."""
    found: Counter[str] = Counter()
    for files in steps:
        if step == ALL_STEPS or files.step == parse_step(step):
            found += files.aside
    return found


def needs_reading(connection: sqlite3.Connection, source: Source, root: Path, step: str, again: bool = True) -> bool:
    """Say whether the files of a step hold anything that the index has not read. `step` is as in `step_key`.

    Without `again`, files that could not be read and have not changed since do not count.
    """
    run = connection.execute("select id from runs where root = ?", (str(real_place(root)),)).fetchone()
    if run is None:
        return True
    jobs = find_jobs(connection, run[0], root, _chosen(source.shards(root), step))
    failed = set() if again else _failed(connection, run[0])
    return any((job.shard_id, job.size, job.mtime_ns) not in failed for job in jobs)


def _failed(connection: sqlite3.Connection, run_id: int) -> set[tuple[int, int, int]]:
    """Return (id, size, mtime_ns) of the files of a run that could not be read, as they were then."""
    found = connection.execute(
        """
        select id, size, mtime_ns from shards s where run_id = ? and state = 'unread'
            and exists (select 1 from problems p where p.shard_id = s.id and p.line is null)
        """,
        (run_id,),
    )
    return {(row[0], row[1], row[2]) for row in found}


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
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 15):
        raise ValueError(f"{shown(text)} is not a step.")
    return int(text)
