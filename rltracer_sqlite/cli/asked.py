"""What `rltracer-index` was asked for, beside the database and the runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """The options of the command line; `steps` says of a step whether it is to be read."""

    steps: Callable[[int | None], bool]
    asked_steps: str | None  # as they were written
    rule: tuple[str, float] | None
    discover: bool
    name: str | None
    tokenizer: str | None
    layout: str | None
    mapping: Path | None
    fts: bool
    rebuild: bool
    quiet: bool
    progress: bool
    jobs: int | None
    executor: str | None
