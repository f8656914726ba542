"""Rows that a file repeats from the end of the file before it.

TRL logs a queue of the last rows that it does not empty, so consecutive files overlap (GRPOTrainer.log). Rows that
happen to be equal are different samples: a policy that has collapsed, or answers in a word, writes the same rows anew
where the same prompts come again. So only the end of one file and the beginning of the next count, in a queue that does
not shrink, and only rows that chance would not write twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log2
from typing import NamedTuple

from ...amounts import plural
from ..base import OF_THE_FILE_BEFORE, Problem, SourceError
from ..files import open_shard
from ..parquet_file import ParquetError
from ..places import Root
from .mapping import Mapping, Role
from .parquet import parquet_rows
from .rows import Row, encoded

LONG_ANSWER = 50  # bytes of JSON; a policy that writes several such answers to a prompt does not write them all again
LEAST_BITS = 20  # below one in a million


class Overlap(NamedTuple):
    """How many rows at the beginning of a shard are equal to the last ones of the shard before, and if they are those.

    Where `is_sure` is false they may be other samples with the same words.
    """

    rows: int = 0
    is_sure: bool = False


class Repeated(Problem, gc=False):
    """That rows are counted once although two files have them."""

    rows: int = 0


class Compared(NamedTuple):
    """What is compared of a row: all of it but its step; with its prompt and its answer."""

    whole: bytes
    prompt: bytes
    answer: bytes


def overlap(root: Root, path: str, before: str, mapping: Mapping) -> Overlap:
    """Return which rows at the beginning of a Parquet shard are the last rows of the shard `before`."""
    try:
        earlier, later = _rows(root, before, mapping), _rows(root, path, mapping)
    except (ParquetError, SourceError, OSError):
        return Overlap()
    if len(later) < len(earlier):  # a queue does not shrink: these are files of different runs
        return Overlap()
    said, sure, longest = _Said([*earlier, *later]), 0, 0
    for length in common_lengths(earlier, later):
        said.again(later[longest:length])
        longest = length
        if said.is_no_chance:
            sure = length
            break
    if sure:
        return Overlap(sure, True)
    # A single equal row says nothing, unless it is a whole file.
    return Overlap(longest if longest > 1 or len(earlier) == 1 else 0)


def common_lengths(earlier: Sequence[Compared], later: Sequence[Compared]) -> list[int]:
    """Return, in order, how many rows the later file may begin with that the earlier one ends with.

    The later has at least as many. These are the borders of the later followed by the earlier, found in one pass as
    Knuth, Morris and Pratt (1977) do: where all rows are equal, comparing each end with each beginning would take the
    square of their number.
    """
    begins, lengths = later[: len(earlier)], [0]  # the longest border of each beginning
    at = 0
    for row in begins[1:]:
        at = _longer(begins, lengths, at, row)
        lengths.append(at)
    at = 0
    for row in earlier:
        at = _longer(begins, lengths, lengths[at - 1] if at == len(begins) else at, row)
    found = []
    while at:
        found.append(at)
        at = lengths[at - 1]
    return found[::-1]


def _longer(begins: Sequence[Compared], lengths: Sequence[int], at: int, row: Compared) -> int:
    """Return how many rows are matched after one more, where `at` of them were matched before it."""
    while at and begins[at] != row:
        at = lengths[at - 1]
    return at + (begins[at] == row)


class _Said:
    """What a policy has said again, judged by how different its answers to a prompt are."""

    def __init__(self, written: Sequence[Compared]) -> None:
        self._written = Counter((row.prompt, row.answer) for row in written)  # with what is said again once
        self._doubled = Counter[bytes]()  # by prompt
        for (prompt, _), times in self._written.items():
            self._doubled[prompt] += times - 1
        self._rows: set[Compared] = set()
        self._again: dict[bytes, Counter[bytes]] = {}  # answers by prompt
        self._bits: dict[bytes, float] = {}  # of the prompts with several answers, which are few before it is no chance

    def again(self, rows: Sequence[Compared]) -> None:
        """Count further rows as said again."""
        self._rows.update(rows)
        for row in rows:
            self._written[row.prompt, row.answer] -= 1
            self._doubled[row.prompt] -= self._written[row.prompt, row.answer] > 0
            self._again.setdefault(row.prompt, Counter())[row.answer] += 1
        for prompt in {row.prompt for row in rows}:
            answers = self._again[prompt]
            if len(answers) > 1:
                count = answers.total()
                self._bits[prompt] = sum(-times * log2(times / count) for times in answers.values())

    @property
    def is_no_chance(self) -> bool:
        """Whether a policy would hardly write these rows twice."""
        if len(self._rows) < 2:
            return False
        return sum(self._bits.values()) >= LEAST_BITS or any(
            not self._doubled[prompt] and min(map(len, self._again[prompt])) >= LONG_ANSWER for prompt in self._bits
        )


def told_overlap(found: Overlap, size: int, before: str) -> Problem:
    """Return what is said of rows that are equal to those of the file before."""
    repeat, are = ("repeats", "is") if found.rows == 1 else ("repeat", "are")
    rows, name = f"{plural(found.rows, 'row')} from here on", before[:200]
    if found.is_sure:
        return Repeated(
            1, 0, size, f"{rows} {repeat} the end of {name}{OF_THE_FILE_BEFORE.format(are=are)}", found.rows
        )
    equal = "equals the last one" if found.rows == 1 else "equal the last ones"
    return Problem(
        1, 0, size,
        f"{rows} {equal} of {name}, logged again or sampled anew, which such short or like answers do not tell: each "
        "is counted",
    )  # fmt: skip


def _rows(root: Root, path: str, mapping: Mapping) -> list[Compared]:
    steps = _columns([shape.roles.get("step") for shape in mapping.shapes])
    prompts = _columns([shape.content.prompt for shape in mapping.shapes])
    answers = _columns([shape.content.completion for shape in mapping.shapes])
    with open_shard(root, path) as reader:
        return [
            Compared(
                encoded({name: cell for name, cell in row.cells.items() if name not in steps}),
                _part(row, prompts),
                _part(row, answers),
            )
            for row in parquet_rows(reader, path)
        ]


def _columns(roles: Sequence[Role | None]) -> set[str]:
    return {column for role in roles if role for column in role.columns}


def _part(row: Row, columns: set[str]) -> bytes:
    return encoded({name: cell for name, cell in row.cells.items() if name in columns})
