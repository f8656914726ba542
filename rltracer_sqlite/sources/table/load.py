"""Decoding one trajectory of a table from its row."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from ...tokens.tokenizer import TextTokenizer, TokenizerError
from ...trajectory import Message, Trajectory
from ..base import CHANGED, Entry, Locator, LocatorError, Shard
from ..conversation import trajectory_of
from ..files import read_bytes, read_place
from ..places import Root
from ..readers import ByteReader
from ..values import logprob_summary
from .entries import Place, Reading, read_row, read_words
from .mapping import Mapping, Shape
from .outputs import Output, gap_words, gaps, one_rollout
from .parquet import NumberedRows
from .rollouts import LINES
from .rows import BOM, Row, RowError, expand, read_object
from .shapes import shape_of
from .sqlite import load_sqlite_row

NUMBERED = ("parquet", "sqlite")  # files whose rows have a number instead of a place in the bytes
SEVERAL = (
    "a rollout of {count:,} outputs, each with a context of its own and a branch here; it is counted once, with the "
    "reward of the last"
)


class Record(NamedTuple):
    """One record: its bytes where it has a place of its own, its shape, and its rows by their item.

    Where it is a rollout of several outputs, `outputs` are the rows of all of them, as they follow each other.
    """

    raw: bytes | None
    shape: Shape
    rows: dict[int | None, Row]
    outputs: tuple[Row, ...] = ()


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

    def outputs(self, locator: Locator) -> tuple[Record, list[Row]]:
        """Return the record at a locator, and the row that is meant, or those of all outputs of a rollout."""
        record, row = self.row(locator)
        return record, [Row(one.cells, one.numbers) for one in record.outputs] or [row]

    def _read(self, locator: Locator) -> Record:
        rows, raw = self._record(locator)
        shapes = [shape_of(row, self.mapping) for row in rows]
        shape = shapes[-1]
        if shape is None or any(other is not shape for other in shapes):
            raise _changed(locator, "another record")
        if len(rows) > 1:
            return Record(raw, shape, {None: rows[-1]}, tuple(rows))
        try:
            return Record(raw, shape, dict(expand(rows[0], shape)))
        except ValueError:
            raise _changed(locator, "another record") from None

    def _record(self, locator: Locator) -> tuple[list[Row], bytes | None]:
        if locator.layout in NUMBERED and type(locator.line) is not int:
            raise LocatorError(f"The number of a row in {locator.path!r} is missing.")
        if locator.layout == "sqlite":
            return [load_sqlite_row(self.root, locator.path, self.mapping.table, locator.line or 0)], None
        if locator.layout == "parquet":
            return [self._parquet.row(locator.path, (locator.line or 0) - 1)], None
        place = locator.path, locator.byte_offset, locator.byte_length
        raw = read_place(self.reader, *place) if self.reader else read_bytes(self.root, *place)
        is_rollout = self.mapping.has_outputs and locator.layout == LINES
        lines = [line for line in raw.split(b"\n") if line.strip()] if is_rollout else [raw]
        try:
            return [Row(read_object(line.removeprefix(BOM))[0]) for line in lines or [raw]], raw
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
    record, rows = records.outputs(locator)
    read = [(row, _read_row(row, record.shape, locator, tokenizer)) for row in rows]
    _refuse_another(locator, read[0][1].entry.uid)
    if len(read) == 1:
        return _trajectory(locator, record, read, read[0][1].entry, [])
    outputs = {id(entry): entry for _, reading in read if isinstance(entry := reading.entry, Output)}
    if len(outputs) < len(read) or len({output.rollout for output in outputs.values()}) > 1:
        raise _changed(locator, "another record")
    entry = one_rollout(list(outputs.values()))
    read.sort(key=lambda one: outputs[id(one[1].entry)].number)
    missing = gaps(outputs.values())
    remarks = [SEVERAL.format(count=len(read)), *([gap_words(missing)] if missing else [])]
    trajectory = _trajectory(locator, record, read, entry, remarks)
    trajectory.metadata["outputs"] = len(read)
    return replace(trajectory, record={**trajectory.record, "outputs": [row.record() for row, _ in read]})


def _trajectory(
    locator: Locator, record: Record, read: list[tuple[Row, Reading]], entry: Entry, remarks: list[str]
) -> Trajectory:
    """Return the trajectory of a row, or of the outputs of a rollout in the order in which they were sampled."""
    readings = [reading for _, reading in read]
    flags = [flag for one in readings for flag in (*one.conversation.flags, *one.remarks)]
    row, last = read[-1]
    # One row of many is shown alone; a record that is one row as it stands.
    trajectory = trajectory_of(
        entry,
        locator,
        last.conversation.messages,
        row.bytes() if record.raw is None or record.shape.layout == "columns" else record.raw,
        row.record(),
        tools=next((reading.tools for reading in reversed(readings) if reading.tools), None),
        truth=last.truth,
        remarks=[*remarks, *dict.fromkeys(flags)],
    )
    tokens = [reading.tokens for reading in readings]
    trajectory.metadata["family"] = last.conversation.family
    trajectory.metadata["logprobs"] = logprob_summary(*(one.trained_logprobs() for one in tokens if one))
    if last.truth is not None:
        trajectory.metadata["task"] = {**(trajectory.metadata["task"] or {}), "ground_truth": last.truth}
    if len(read) > 1:
        trajectory = replace(trajectory, **_branches([reading.conversation.messages for reading in readings]))
    return replace(trajectory, read_tokens=partial(list, tokens)) if any(t and t.ids for t in tokens) else trajectory


def _branches(outputs: list[list[Message]]) -> dict[str, Any]:
    """Return the branches of a trajectory of several outputs, which share no message."""
    starts = accumulate(map(len, outputs), initial=0)
    nodes = [list(range(start, start + len(output))) for start, output in zip(starts, outputs, strict=False)]
    return {"branches": outputs, "branch_nodes": nodes, "trained": [True] * len(outputs)}


def load_table_messages(locator: Locator, records: RecordCache, tokenizer: TextTokenizer | None) -> list[Message]:
    """Return the messages of the trajectory at a locator, and read nothing else of it. Raises LocatorError."""
    record, row = records.row(locator)
    if record.outputs:
        branches = load_table_row(locator, records, tokenizer).branches
        return [message for branch in branches for message in branch]
    try:
        uid, conversation = read_words(row, record.shape, locator.item, tokenizer)
    except (RowError, TokenizerError) as error:
        raise LocatorError(f"{locator.shown}: {error}.") from None
    _refuse_another(locator, uid)
    return conversation.messages


def _read_row(row: Row, shape: Shape, locator: Locator, tokenizer: TextTokenizer | None) -> Reading:
    numbered = locator.layout in NUMBERED
    place = Place(locator.byte_offset, locator.byte_length, locator.line or 1, locator.item, numbered)
    shard = Shard(locator.path, locator.path, locator.layout)
    try:
        return read_row(row, shape, shard, place, tokenizer)
    except (RowError, TokenizerError) as error:
        raise LocatorError(f"{locator.shown}: {error}.") from None


def _refuse_another(locator: Locator, uid: str | None) -> None:
    """Raise LocatorError where a recorded id says that this is not the row that was indexed; a place says nothing."""
    if not locator.uid.startswith(f"{locator.path}@") and uid != locator.uid:
        raise _changed(locator, "another record")
