"""What holds for every reader, whatever a file holds: nothing is lost, and what is found can be found again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from rltracer_sqlite.sources.base import (
    START,
    Entry,
    Locator,
    NotRollouts,
    Position,
    Problem,
    Scanned,
    Shard,
    Source,
    SourceError,
    Update,
)
from rltracer_sqlite.tool_names import LONGEST_NAME, MOST_NAMES

BLANK = b" \t\r\n\x0b\x0c"


def scanned(source: Source, root: Path, shard: Shard, start: Position = START) -> list[Scanned] | None:
    """Return what a scan yields, or None where it says in a sentence that the file is not one to be read."""
    try:
        found = list(source.scan(root, shard, start))
    except NotRollouts as error:
        assert str(error)
        return None
    except SourceError as error:
        assert str(error)
        return None
    assert found, "a scan ends with the position that it reached"
    assert isinstance(found[-1], Position)
    check_values(found)
    return found


def check_values(found: Iterable[Scanned]) -> None:
    """Check that the index can keep what was found, and that the positions never go back."""
    positions = [START]
    for one in found:
        if isinstance(one, Position):
            positions.append(one)
            continue
        assert 0 <= one.byte_offset < 2**63
        assert 0 <= one.byte_length < 2**63
        if isinstance(one, Problem):  # the index cuts a reason that is long
            assert one.reason.encode()
            continue
        fields = msgspec.structs.asdict(one)
        msgspec.convert(fields, type(one))  # the columns of the index have types
        check_names(fields.pop("tools", None))
        for value in fields.values():
            _check_value(value)
    assert all(one.offset <= other.offset and one.line <= other.line for one, other in pairwise(positions))


def check_names(written: str | None) -> None:
    """Check that the names of tools are what the schema promises: few and short, distinct, in JSON that is text."""
    if written is None:
        return
    names = json.loads(written.encode())
    assert 0 < len(names) == len(set(names)) <= MOST_NAMES
    for name in names:
        assert 0 < len(name.encode()) <= 4 * LONGEST_NAME
        assert "\0" not in name


def _check_value(value: Any) -> None:
    if isinstance(value, int):
        assert -(2**63) <= value < 2**63
    elif isinstance(value, float):
        assert value == value
        assert abs(value) != float("inf")
    elif isinstance(value, str):
        value.encode()
        assert len(value) < 2000
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_value(name)
            _check_value(inner)


def check_nothing_lost(data: bytes, found: Iterable[Scanned], start: int = 0) -> None:
    """Check that every byte is in an entry, an update, a problem, a waiting tail, or blank."""
    told = bytearray(len(data))
    for one in found:
        if isinstance(one, Position):
            _mark(told, one.offset, one.waiting)
            last = one
        else:
            assert one.byte_offset + one.byte_length <= len(data)
            _mark(told, one.byte_offset, one.byte_length)
    assert last.offset + last.waiting <= len(data)
    for at in range(start, len(data)):
        assert told[at] or data[at] in BLANK, f"byte {at} is in nothing that was found"


def _mark(told: bytearray, offset: int, length: int) -> None:
    told[offset : offset + length] = b"\1" * len(told[offset : offset + length])


def check_resumed(source: Source, root: Path, shard: Shard, found: list[Scanned]) -> None:
    """Check that a scan goes on from each of its positions with exactly what came after it."""
    for at, one in enumerate(found[:-1]):
        if isinstance(one, Position):
            assert list(source.scan(root, shard, one)) == found[at + 1 :]
    last = found[-1]
    assert isinstance(last, Position)
    assert [one for one in source.scan(root, shard, last) if not isinstance(one, (Problem, Position))] == []


def check_parts(source: Any, root: Path, shard: Shard, found: list[Scanned], stop: int) -> None:
    """Check that a shard scanned in two parts, cut anywhere, and joined gives what it gives as a whole."""
    *first, reached = source.scan_part(root, shard, START, stop)
    assert isinstance(reached, Position)
    second = source.scan_part(root, shard, reached)
    assert list(source.joined(shard, START, [*first, *second])) == found


def place_of(one: Entry | Update, shard: Shard) -> Locator:
    """Return the locator of what a scan found."""
    return Locator(one.uid, shard.path, shard.layout, one.byte_offset, one.byte_length, one.item, one.line)


def entries(found: Iterable[Scanned] | None) -> list[Entry]:
    """Return the trajectories among what a scan found."""
    return [one for one in found or () if isinstance(one, Entry)]


def remarked(found: Iterable[Scanned]) -> set[int]:
    """Return the offsets of records that were read in part only."""
    return {one.byte_offset for one in found if isinstance(one, Problem)}


@contextmanager
def patched(module: Any, **values: Any) -> Iterator[None]:
    """Set attributes of a module for a while: smaller pieces than a file of a test would ever fill."""
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)
