"""Decoding one trajectory of a table from its row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...model import Trajectory
from ...tokens.tokenizer import TextTokenizer, TokenizerError
from ..base import Locator, LocatorError, Shard
from ..conversation import CHANGED, trajectory_of
from ..files import read_bytes
from .entries import Place, Reading, read_row
from .mapping import Mapping, Shape
from .parquet import load_parquet_row
from .rows import Row, RowError, expand, read_object
from .shapes import shape_of
from .sqlite import load_sqlite_row

NUMBERED = ("parquet", "sqlite")  # files whose rows have a number instead of a place in the bytes


def load_table_row(root: Path, locator: Locator, mapping: Mapping, tokenizer: TextTokenizer | None) -> Trajectory:
    """Return the trajectory at a locator, reading its record's bytes only. Raises LocatorError."""
    record, raw = _record(root, locator, mapping)
    shape = shape_of(record, mapping)
    if shape is None:
        raise LocatorError(CHANGED.format(path=locator.path, what=f"no record at byte {locator.byte_offset:,}"))
    row = _row(record, shape, locator)
    reading = _reading(row, shape, locator, tokenizer)
    # One row of many is shown alone; a record that is one row as it stands.
    trajectory = trajectory_of(
        reading.entry,
        locator,
        reading.conversation.messages,
        row.bytes() if raw is None or shape.layout == "columns" else raw,
        row.record(),
        tools=reading.tools,
        remarks=[*reading.conversation.flags, *reading.remarks],
    )
    trajectory.metadata["family"] = reading.conversation.family
    trajectory.metadata["logprobs"] = _logprobs(reading)
    if reading.truth is not None:
        trajectory.metadata["task"] = {**(trajectory.metadata["task"] or {}), "ground_truth": reading.truth}
    tokens = reading.tokens
    return replace(trajectory, read_tokens=lambda: [tokens] if tokens else [])


def _record(root: Path, locator: Locator, mapping: Mapping) -> tuple[Row, bytes | None]:
    number = locator.line
    if locator.layout in NUMBERED and type(number) is not int:
        raise LocatorError(f"The number of a row in {locator.path!r} is missing.")
    if locator.layout == "parquet":
        return load_parquet_row(root, locator.path, (number or 0) - 1), None
    if locator.layout == "sqlite":
        return load_sqlite_row(root, locator.path, mapping.table, number or 0), None
    raw = read_bytes(root, locator.path, locator.byte_offset, locator.byte_length)
    try:
        return Row(read_object(raw.removeprefix(b"\xef\xbb\xbf"))[0]), raw
    except ValueError:
        what = f"no record at byte {locator.byte_offset:,}"
        raise LocatorError(CHANGED.format(path=locator.path, what=what)) from None


def _row(record: Row, shape: Shape, locator: Locator) -> Row:
    """Return the row that a locator means, out of its record."""
    try:
        for item, row in expand(record, shape):
            if item == locator.item:
                return row
    except ValueError:
        pass
    what = f"no row {locator.item} in the record at byte {locator.byte_offset:,}"
    raise LocatorError(CHANGED.format(path=locator.path, what=what))


def _reading(row: Row, shape: Shape, locator: Locator, tokenizer: TextTokenizer | None) -> Reading:
    numbered = locator.layout in NUMBERED
    place = Place(locator.byte_offset, locator.byte_length, locator.line or 1, locator.item, numbered)
    shard = Shard(locator.path, locator.path, locator.layout)
    try:
        reading = read_row(row, shape, shard, place, tokenizer)
    except (RowError, TokenizerError) as error:
        raise LocatorError(f"{locator.path}: {error}.") from None
    # A recorded id says whether this is still the row that was indexed; a place says nothing.
    if not locator.uid.startswith(f"{locator.path}@") and reading.entry.uid != locator.uid:
        what = f"another record at byte {locator.byte_offset:,}"
        raise LocatorError(CHANGED.format(path=locator.path, what=what))
    return reading


def _logprobs(reading: Reading) -> dict[str, float | int] | None:
    """Return mean, minimum and count of the sampled tokens' logprobs; None where none are recorded."""
    tokens = reading.tokens
    if tokens is None or tokens.logprobs is None or tokens.mask is None:
        return None
    values = [v for v, sampled in zip(tokens.logprobs, tokens.mask, strict=False) if sampled and v is not None]
    return {"mean": sum(values) / len(values), "min": min(values), "count": len(values)} if values else None
