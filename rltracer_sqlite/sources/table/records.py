"""From one record to what the index is told of it: entries, problems, or that it is no trajectory."""

from __future__ import annotations

import msgspec

from ...tokens.tokenizer import TextTokenizer, TokenizerError
from ..base import Entry, LocatorError, Misfit, Problem, Shard
from .entries import Place, Reading, read_row
from .mapping import Mapping, Shape
from .rows import Row, RowError, expand
from .shapes import shape_of, why_none

MOST_JUDGED = 8  # rows of a shard


class Unfit(msgspec.Struct, gc=False):
    """Consecutive records that fit no shape, told as one problem."""

    line: int
    offset: int
    length: int
    records: int
    why: str

    def problem(self) -> Problem:
        """Return the problem that says so."""
        count = f"{self.records:,} records that are" if self.records > 1 else "a record that is"
        return Problem(self.line, self.offset, self.length, f"{count} no trajectory: {self.why}")

    def joined(self, later: Unfit) -> Unfit:
        """Return these records and the next one as one."""
        length = max(self.offset + self.length, later.offset + later.length) - self.offset
        return Unfit(self.line, self.offset, length, self.records + 1, self.why)


Found = list[Entry | Problem | Unfit]


class RecordReader:
    """Reads the records of one shard, and remembers what is said once per shard."""

    def __init__(self, mapping: Mapping, shard: Shard, tokenizer: TextTokenizer | None) -> None:
        self.mapping, self.shard, self.tokenizer = mapping, shard, tokenizer
        self.said_misfit = False
        self.judged = 0  # rows whose text was looked at for how the tokenizer fits
        self.fitted = False  # has a record had a known shape?

    def read(self, record: Row, place: Place) -> Found:
        """Return what one record gives."""
        shape = shape_of(record, self.mapping)
        if shape is None:
            return [Unfit(place.line, place.offset, place.length, 1, why_none(record, self.mapping))]
        self.fitted = True
        found: Found = []
        try:
            for item, row in expand(record, shape):
                found += self._row(row, shape, place if item is None else place._replace(item=item))
        except ValueError as error:
            found.append(self._problem(place, f"not readable: {error}"))
        return found

    def _row(self, row: Row, shape: Shape, place: Place) -> Found:
        which = "" if place.item is None else f"item {place.item}: "
        try:
            reading = read_row(row, shape, self.shard, place, self.tokenizer, with_ids=False)
        except RowError as error:
            return [self._problem(place, f"{which}not readable: {error}")]
        except TokenizerError as error:
            raise LocatorError(str(error)) from None
        found: Found = [reading.entry]
        if reading.remarks:
            found.append(self._problem(place, f"{which}read in part: {'; '.join(reading.remarks)}"))
        return [*self._misfit(reading, place), *found]

    def _misfit(self, reading: Reading, place: Place) -> Found:
        """Say once that the tokenizer is another one than the policy's."""
        if self.said_misfit or self.tokenizer is None or not reading.ids:
            return []
        self.judged += 1
        # A policy may well write a row of broken characters: later ones say something only by what is no token at all.
        if self.judged > MOST_JUDGED and max(reading.ids) < self.tokenizer.size:
            return []
        reason = self.tokenizer.misfit(reading.ids)
        self.said_misfit = reason is not None
        return [Misfit(place.line, place.offset, place.length, reason)] if reason else []

    def _problem(self, place: Place, reason: str) -> Problem:
        return Problem(place.line, place.offset, place.length, reason)
