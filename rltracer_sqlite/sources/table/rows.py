"""Rows of named cells: decoded when they are asked for, whatever container they come out of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec

from ..lines import decode_leniently
from .mapping import Shape

Raw = msgspec.Raw
OBJECT = msgspec.json.Decoder(dict[str, Raw])
LIST = msgspec.json.Decoder(list[Raw])
BOM = b"\xef\xbb\xbf"  # before a text, by some writers
KINDS = {b'"': "text", b"[": "list", b"{": "object", b"t": "boolean", b"f": "boolean", b"n": "null"}


class RowError(ValueError):
    """A row that is no trajectory; the sentence names the column."""


class Row:
    """One row. `numbers` are the columns known to hold numbers, where a single null cell cannot tell."""

    def __init__(self, cells: Mapping[str, Any], numbers: frozenset[str] = frozenset()) -> None:
        self.cells, self.numbers = cells, numbers
        self._decoded: dict[str, Any] = {}

    def get(self, path: str) -> Any:
        """Return the value at a dotted path, or None. A text on the way is read as JSON; `*` is every element.

        A name may hold dots itself: the longest one that there is leads on.
        """
        if path in self.cells:
            return self._cell(path)
        end = path.rfind(".")
        while end >= 0 and path[:end] not in self.cells:
            end = path.rfind(".", 0, end)
        return None if end < 0 else at_path(self._cell(path[:end]), path[end + 1 :].split("."))

    def has(self, path: str) -> bool:
        """Say whether there is a column of this name, or a value at this path."""
        return path in self.cells or self.get(path) is not None

    def has_place(self, path: str) -> bool:
        """Say whether there is a column of this name, or a place at this path, whatever is in it."""
        if path in self.cells:
            return True
        outer, _, name = path.rpartition(".")
        value = self.get(outer) if outer else None
        if isinstance(value, str):
            value = json_text(value)
        return isinstance(value, Mapping) and name in value

    def kind(self, name: str) -> str:
        """Return what a cell holds, without decoding it: text, number, boolean, list, object, null or missing."""
        if name not in self.cells:
            return "null" if (value := self.get(name)) is None else kind_of(value)
        return kind_of(self.cells[name])

    def record(self) -> dict[str, Any]:
        """Return the whole row, decoded."""
        return {name: self._cell(name) for name in self.cells}

    def bytes(self) -> bytes:
        """Return the row as a JSON object, each cell as it is written in its file."""
        pairs = (
            json.dumps(name).encode() + b":" + (bytes(cell) if isinstance(cell, Raw) else encoded(cell))
            for name, cell in self.cells.items()
        )
        return b"{" + b",".join(pairs) + b"}"

    def _cell(self, name: str) -> Any:
        if name not in self._decoded:
            self._decoded[name] = decoded(self.cells[name])
        return self._decoded[name]


def kind_of(cell: Any) -> str:
    """Return the kind of a decoded or undecoded JSON value."""
    if isinstance(cell, Raw):
        with memoryview(cell) as view:
            return KINDS.get(bytes(view[:1]), "number")
    if cell is None:
        return "null"
    if isinstance(cell, bool):
        return "boolean"
    if isinstance(cell, (int, float)):
        return "number"
    return "text" if isinstance(cell, str) else "list" if isinstance(cell, list) else "object"


def decoded(cell: Any) -> Any:
    """Return the value of a cell; what strict JSON refuses inside a text is read leniently."""
    if not isinstance(cell, Raw):
        return cell
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            return decode_leniently(bytes(cell))[0]
        except ValueError:
            return None


def encoded(value: Any) -> bytes:
    """Return a decoded value as JSON; a lone surrogate, which is no text, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")


def read_object(data: bytes | memoryview) -> tuple[dict[str, Any], str | None]:
    """Return the cells of a JSON object, undecoded where strict JSON allows it, and a remark.

    The undecoded cells keep pointing into `data`. Raises ValueError when it is no JSON object.
    """
    try:
        return OBJECT.decode(data), None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value, remark = decode_leniently(bytes(data))
    if not isinstance(value, dict):
        raise ValueError(f"a JSON {type(value).__name__}, not an object")
    return value, remark


def elements(cell: Any) -> list[Any]:
    """Return the elements of a list cell, undecoded where the list is. Raises ValueError for another cell."""
    if isinstance(cell, Raw):
        try:
            return LIST.decode(cell)
        except RecursionError:
            raise ValueError("nested too deeply") from None
    if not isinstance(cell, list):
        raise ValueError("not a list")
    return cell


def expand(row: Row, shape: Shape) -> Iterator[tuple[int | None, Row]]:
    """Yield (item, row) for each trajectory of a record; item is None where the record is one row.

    Raises RowError where the columns of the record do not have one length.
    """
    if shape.layout == "columns":
        yield from enumerate(_transposed(row, [n for n in row.cells if row.kind(n) == "list"], "columns"))
    elif shape.layout == "singletons":
        yield None, unwrapped(row)
    elif shape.explode:
        yield from enumerate(_transposed(row, [n for n in shape.explode if row.kind(n) == "list"], "lists"))
    elif shape.variants:
        yield from ((item, row) for item in range(len(shape.variants)))
    else:
        yield None, row


def _transposed(row: Row, names: list[str], what: str) -> Iterator[Row]:
    lists = {name: elements(row.cells[name] if name in row.cells else row.get(name)) for name in names}
    lengths = {name: len(cells) for name, cells in lists.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise RowError(f"its {what} have different lengths: {told}"[:400])
    shared = {name: cell for name, cell in row.cells.items() if name not in lists}
    numbers = row.numbers | {name for name, cells in lists.items() if _are_numbers(cells)}
    for cells in zip(*lists.values(), strict=True):
        yield Row({**shared, **dict(zip(lists, cells, strict=True))}, frozenset(numbers))


def _are_numbers(cells: list[Any]) -> bool:
    kinds = set(map(kind_of, cells))
    return "number" in kinds and kinds <= {"number", "null"}


def unwrapped(row: Row) -> Row:
    """Return a row whose lists of one value are that value. Raises RowError for a list of another length."""
    cells = {}
    for name, cell in row.cells.items():
        if row.kind(name) == "list":
            inner = elements(cell)
            if len(inner) != 1:
                raise RowError(f"column {name}: expected a list of one value, found {len(inner):,}")
            cell = inner[0]
        cells[name] = cell
    return Row(cells, row.numbers)


def at_path(value: Any, steps: list[str]) -> Any:
    """Return what a path leads to inside a value, or None. A text on the way is read as JSON; `*` is every element."""
    for position, step in enumerate(steps):
        if isinstance(value, str):
            value = json_text(value)
        if step == "*":
            inner = [at_path(one, steps[position + 1 :]) for one in value] if isinstance(value, list) else []
            return list(chain.from_iterable(one if isinstance(one, list) else [one] for one in inner))
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def json_text(text: str) -> Any:
    """Return the value that a text holds as JSON, or None where it holds none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        try:
            return decode_leniently(text.encode("utf-8", "replace"))[0]
        except ValueError:
            return None
