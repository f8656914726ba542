"""What a row of the table is: an operation, done our way and another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .bench import Bench
from .processes import Command


@dataclass(frozen=True)
class Operation:
    """One row of the table: our way, the other way, and what is demanded of the first.

    Both commands answer the same question, and their answers have to be equal. Where there is no other way, the
    seconds themselves are what is judged.
    """

    name: str
    ours: Callable[[Bench], Command]
    other: Callable[[Bench], Command] | None = None
    other_name: str = "rltracer 0.1.0"
    bar: float | None = None  # our time is to be at most this share of the other's
    seconds_bar: float | None = None  # and at most this many seconds
    peak_bar: Callable[[Bench], float] | None = None  # and our peak memory at most this many MiB
    needs_tokenizer: bool = False  # it is left out where the comparison was given none
    in_process: bool = False  # compare what the programs timed themselves, without their start
    reads: Callable[[Bench], list[Path]] | None = None  # the files that it reads in full, for the share of raw reading
    after: Callable[[Bench], object] | None = None  # run once when all is measured
