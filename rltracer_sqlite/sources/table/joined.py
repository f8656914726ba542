"""What the records of a table say, put together: neighbours that fit nothing, remarks that many share, positions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from ..base import Entry, KnownOther, Misfit, NotRollouts, Position, Problem, Scanned
from .records import Unfit

COMMIT_RECORDS = 4000
COMMIT_BYTES = 1 << 28
MOST_UNFIT = 20  # records at the beginning of a file that fit nothing: then none of it will


class Remark(Problem, gc=False):
    """What is said once for all records it is true of."""


class Read(msgspec.Struct, gc=False):
    """That a record has been read."""

    line: int
    offset: int  # behind it, where reading can go on; 0 where only the whole file can be read
    fitted: bool  # has a record had a known shape?


Finding = Entry | Problem | Unfit | Read | Position


def joined_records(start: Position, found: Iterable[Finding], known: Collection[str] = ()) -> Iterator[Scanned]:
    """Yield what a scan of a table does. Raises NotRollouts when the first records show that it holds no rollouts.

    `known` has how what a mapping says of records that are something else begins.
    """
    return _Joining(start, known).told(found)


class _Joining:
    def __init__(self, start: Position, known: Collection[str]) -> None:
        self.known = tuple(known)
        self.fitted = start.offset > 0
        self.unfit: Unfit | None = None
        self.first_unfit, self.unfits = "", 0  # until one fits
        self.strange = ""  # why the first of them fits nothing that is of no known kind
        self.remarks: dict[str, tuple[Problem, int]] = {}
        self.said_misfit = False
        self.untold = 0  # records since the last position
        self.committed = start.offset  # bytes before it

    def told(self, found: Iterable[Finding]) -> Iterator[Scanned]:
        """Yield what is said of the findings of a shard, those of a kind together."""
        reached = Position()
        for one in found:
            if isinstance(one, Read):
                yield from self._read(one)
            elif isinstance(one, Position):
                reached = one
            elif isinstance(one, Unfit):
                self._take_unfit(one)
            elif isinstance(one, Remark):
                first, count = self.remarks.get(one.reason, (Problem(*_place(one), one.reason), 0))
                self.remarks[one.reason] = first, count + 1
            else:
                yield from self._tell_unfit()
                if not isinstance(one, Misfit) or not self.said_misfit:
                    yield one
                self.said_misfit = self.said_misfit or isinstance(one, Misfit)
        self._refuse(1)
        yield from self._tell_unfit()
        yield from self._tell_remarks()
        yield reached

    def _read(self, one: Read) -> Iterator[Scanned]:
        self.fitted = self.fitted or one.fitted
        self.untold += 1
        is_enough = self.untold >= COMMIT_RECORDS or one.offset - self.committed >= COMMIT_BYTES
        if self.unfit is None and is_enough:
            yield from self._tell_remarks()
            yield Position(one.offset, one.line) if one.offset else Position()
            self.untold, self.committed = 0, one.offset

    def _take_unfit(self, one: Unfit) -> None:
        self.unfit = self.unfit.joined(one) if self.unfit else one
        if not self.fitted:
            self.first_unfit, self.unfits = self.first_unfit or one.why, self.unfits + 1
            self.strange = self.strange or (one.why if not one.why.startswith(self.known) else "")
            self._refuse(MOST_UNFIT)

    def _refuse(self, least: int) -> None:
        if not self.fitted and self.unfits >= least:
            raise NotRollouts(self.strange) if self.strange else KnownOther(self.first_unfit)

    def _tell_unfit(self) -> Iterator[Problem]:
        if self.unfit:
            yield self.unfit.problem()
            self.unfit = None

    def _tell_remarks(self) -> Iterator[Problem]:
        for first, count in self.remarks.values():
            first.reason = f"read in part: {first.reason}" + (f" (and {count - 1:,} more)" if count > 1 else "")
            yield first
        self.remarks = {}


def _place(problem: Problem) -> tuple[int | None, int, int]:
    return problem.line, problem.byte_offset, problem.byte_length
