"""The ways that writers put a record on a line, and the places where the lines of a file stand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Dump = Callable[[Any], bytes]


class Place(NamedTuple):
    """Where a record was written: its line, counted from 1, and its bytes without the newline."""

    line: int
    offset: int
    length: int


def line(record: Any) -> bytes:
    """Return a record as pydantic and orjson write it: compact, characters as they are."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def spaced_line(record: Any) -> bytes:
    """Return a record as Python's json.dump writes it: spaces, \\u escapes, NaN as a literal."""
    return json.dumps(record).encode() + b"\n"


def pandas_line(record: Any) -> bytes:
    """Return a record as pandas' to_json writes it: compact, \\u escapes, every slash escaped."""
    return json.dumps(record, separators=(",", ":")).replace("/", "\\/").encode() + b"\n"


def append(path: Path, *records: Any, dump: Dump = line) -> list[Place]:
    """Append records to a file, making its folder, and return where each of them stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_bytes() if path.exists() else b""
    lines = [dump(record) for record in records]
    places, offset = [], len(before)
    for number, data in enumerate(lines, before.count(b"\n") + 1):
        places.append(Place(number, offset, len(data) - 1))
        offset += len(data)
    with path.open("ab") as file:
        file.writelines(lines)
    return places


def append_torn(path: Path, record: Any, dump: Dump = line) -> bytes:
    """Append the first half of a record's line, and return the bytes that complete it."""
    data = dump(record)
    with path.open("ab") as file:
        file.write(data[: len(data) // 2])
    return data[len(data) // 2 :]


def write_json(path: Path, content: Any) -> None:
    """Write a file that is one JSON value, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(line(content))
