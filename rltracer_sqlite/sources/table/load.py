"""Decoding one trajectory of a table from its row."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ...tokens.tokenizer import TextTokenizer, TokenizerError
from ...trajectory import Message, Trajectory
from ..base import CHANGED, Locator, LocatorError, Shard
from ..conversation import trajectory_of
from ..files import read_bytes, read_place
from ..places import Root
from ..readers import ByteReader
from ..values import logprob_summary
from .entries import Place, Reading, read_row, read_words
from .mapping import Mapping, Shape
from .parquet import NumberedRows
from .rows import BOM, Row, RowError, expand, read_object
from .shapes import shape_of
from .sqlite import load_sqlite_row

NUMBERED = ("parquet", "sqlite")  # files whose rows have a number instead of a place in the bytes


class Record(NamedTuple):
    """One record: its bytes where it has a place of its own, its shape, and its rows by their item."""

    raw: bytes | None
    shape: Shape
    rows: dict[int | None, Row]


class RecordCache:
    """Reads records by their locators, and keeps the last one: the rows of a record are asked for one after another.

    `reader` is their file, where it is one and open.
    """

    def __init__(self, root: Root, mapping: Mapping, reader: ByteReader | None = None) -> None:
        self.root, self.mapping, self.reader = root, mapping, reader
        self._parquet = NumberedRows(root)
        self._key: tuple[str, int, int | None] | None = None
        self._last: Record | None = None

    def row(self, locator: Locator) -> tuple[Record, Row]:
        """Return the record at a locator and the row of it that is meant. Raises LocatorError."""
        key = (locator.path, locator.byte_offset, locator.line if locator.layout in NUMBERED else None)
        if self._last is None or key != self._key:
            self._last = None  # the old record goes before the new one comes
            self._key, self._last = key, self._read(locator)
        if locator.item not in self._last.rows:
            raise _changed(locator, f"no row {locator.item} in the record")
        row = self._last.rows[locator.item]
        return self._last, Row(row.cells, row.numbers)  # a new one: the kept one stays undecoded

    def _read(self, locator: Locator) -> Record:
        row, raw = self._record(locator)
        shape = shape_of(row, self.mapping)
        if shape is None:
            raise _changed(locator, "another record")
        try:
            return Record(raw, shape, dict(expand(row, shape)))
        except ValueError:
            raise _changed(locator, "another record") from None

    def _record(self, locator: Locator) -> tuple[Row, bytes | None]:
        if locator.layout in NUMBERED and type(locator.line) is not int:
            raise LocatorError(f"The number of a row in {locator.path!r} is missing.")
        if locator.layout == "sqlite":
            return load_sqlite_row(self.root, locator.path, self.mapping.table, locator.line or 0), None
        if locator.layout == "parquet":
            return self._parquet.row(locator.path, (locator.line or 0) - 1), None
        place = locator.path, locator.byte_offset, locator.byte_length
        raw = read_place(self.reader, *place) if self.reader else read_bytes(self.root, *place)
        try:
            return Row(read_object(raw.removeprefix(BOM))[0]), raw
        except ValueError:
            raise _changed(locator, "no record") from None


def _changed(locator: Locator, what: str) -> LocatorError:
    place = f"row {locator.line}" if locator.layout in NUMBERED else f"byte {locator.byte_offset:,}"
    return LocatorError(CHANGED.format(path=locator.shown, what=f"{what} at {place}"))


def load_table_row(locator: Locator, records: RecordCache, tokenizer: TextTokenizer | None) -> Trajectory:
    """Return the trajectory at a locator, reading its record's bytes only. Raises LocatorError."""
    try:
        return _load(locator, records, tokenizer)
    except RecursionError:
        raise LocatorError(f"The record of {locator.shown} is nested too deeply to be shown.") from None


def _load(locator: Locator, records: RecordCache, tokenizer: TextTokenizer | None) -> Trajectory:
    record, row = records.row(locator)
    reading = _reading(row, record.shape, locator, tokenizer)
    tokens = reading.tokens
    # One row of many is shown alone; a record that is one row as it stands.
    trajectory = trajectory_of(
        reading.entry,
        locator,
        reading.conversation.messages,
        row.bytes() if record.raw is None or record.shape.layout == "columns" else record.raw,
        row.record(),
        tools=reading.tools,
        remarks=[*reading.conversation.flags, *reading.remarks],
    )
    trajectory.metadata["family"] = reading.conversation.family
    trajectory.metadata["logprobs"] = logprob_summary(tokens.trained_logprobs() if tokens else ())
    if reading.truth is not None:
        trajectory.metadata["task"] = {**(trajectory.metadata["task"] or {}), "ground_truth": reading.truth}
    return replace(trajectory, read_tokens=partial(list, [tokens])) if tokens and tokens.ids else trajectory


def load_table_messages(locator: Locator, records: RecordCache, tokenizer: TextTokenizer | None) -> list[Message]:
    """Return the messages of the trajectory at a locator, and read nothing else of it. Raises LocatorError."""
    record, row = records.row(locator)
    try:
        uid, conversation = read_words(row, record.shape, locator.item, tokenizer)
    except (RowError, TokenizerError) as error:
        raise LocatorError(f"{locator.shown}: {error}.") from None
    _refuse_another(locator, uid)
    return conversation.messages


def _reading(row: Row, shape: Shape, locator: Locator, tokenizer: TextTokenizer | None) -> Reading:
    numbered = locator.layout in NUMBERED
    place = Place(locator.byte_offset, locator.byte_length, locator.line or 1, locator.item, numbered)
    shard = Shard(locator.path, locator.path, locator.layout)
    try:
        reading = read_row(row, shape, shard, place, tokenizer)
    except (RowError, TokenizerError) as error:
        raise LocatorError(f"{locator.shown}: {error}.") from None
    _refuse_another(locator, reading.entry.uid)
    return reading


def _refuse_another(locator: Locator, uid: str | None) -> None:
    """Raise LocatorError where a recorded id says that this is not the row that was indexed; a place says nothing."""
    if not locator.uid.startswith(f"{locator.path}@") and uid != locator.uid:
        raise _changed(locator, "another record")
