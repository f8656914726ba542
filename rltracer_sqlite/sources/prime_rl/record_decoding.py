"""Decoding a line into a record: in one pass, after its token arrays were cut out.

Token arrays make up most of a record's bytes; `without_arrays` says why cutting them out is exact.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ..lines import decode_leniently, reencoded
from .record_types import DECODER, NOTHING, Record

ARRAY = b',"token_ids":['
ARRAY_LENGTH = len(ARRAY)
NEXT_ARRAYS = [
    (key, len(key))
    for key in (
        b',"mask":',
        b',"is_content":',
        b',"logprobs":',
        b',"advantages":',
        # Mostly these three hold nothing; found together they end the search for arrays at once.
        b',"reference_logprobs":null,"trainer_logprobs":null,"entropies":null',
        b',"reference_logprobs":',
        b',"trainer_logprobs":',
        b',"entropies":',
    )
]
# In the place of a node's arrays. No file can know the number, so that none is taken for a mark that is not.
MARK = int.from_bytes(os.urandom(6), "big") + 1
MARKED = b',"_cut":%d'
NODE_MARK = MARKED % MARK
BRACKET = 0x5B
SCALAR_STARTS = frozenset(b"0123456789-tfn]")
PROBE_BYTES = 1 << 16
Cut = tuple[int, int]  # where it begins, and where what is kept goes on
DAMAGED_ARRAYS = "its token arrays are damaged in the file, and are left out"


def read_record(buffer: bytearray | bytes, start: int, end: int) -> tuple[Record, list[str]]:
    """Decode the line `buffer[start:end]`, which must be JSON of the format's types; there are no remarks on it.

    Raises ValueError or RecursionError where it is not: then `read_leniently` may help.
    """
    found = buffer.find(ARRAY, start, min(end, start + PROBE_BYTES))
    # An empty first array means a record without tokens, where searching for more of them only costs.
    if found >= 0 and buffer[found + ARRAY_LENGTH : found + ARRAY_LENGTH + 1] != b"]":
        cuts = find_arrays(buffer, start, end)
        record = DECODER.decode(NODE_MARK.join(_between(buffer, start, end, cuts)))
        if len(cuts) == _marked(record):
            return record, []
    # Not copied: the undecoded parts point into the buffer, which is used again when the record is done with.
    return DECODER.decode(memoryview(buffer)[start:end]), []


def _marked(record: Record) -> int:
    """Return how many nodes of a record had arrays cut out: a cut that is in none of them was in a recorded value."""
    nodes = [node for trace in (record, *(record.traces or ())) for node in trace.nodes or ()]
    return sum(node.cut == MARK for node in nodes)


def copied(buffer: bytearray | bytes, start: int, end: int) -> bytes:
    """Return `buffer[start:end]` as bytes, copied once."""
    with memoryview(buffer) as view:
        return bytes(view[start:end])


def without_arrays(buffer: bytearray | bytes, start: int, end: int) -> bytes:
    """Return `buffer[start:end]` without its token arrays; `buffer[end]` must be there, as a line's newline is.

    Exact for compact JSON: `,"token_ids":[` cannot stand inside a string, whose quotes would be escaped, and an
    array of numbers, booleans and nulls ends at the next `]`. A node has one of the next arrays behind it, so a list
    of the same name elsewhere, for example in `info`, stays; a copy of a node in a message loses it, which
    `read_record` notices. Anything else is left as it is.
    """
    return b"".join(_between(buffer, start, end, find_arrays(buffer, start, end)))


def _between(buffer: bytearray | bytes, start: int, end: int, cuts: list[Cut]) -> list[bytes | bytearray]:
    """Return what is left of `buffer[start:end]` between the cuts."""
    pieces = []
    for first, after in cuts:
        pieces.append(buffer[start:first])
        start = after
    pieces.append(buffer[start:end])
    return pieces


def find_arrays(buffer: bytearray | bytes, start: int, end: int) -> list[Cut]:
    """Return where in `buffer[start:end]` the token arrays are that can be cut out, with the comma before them."""
    find, cuts, search = buffer.find, [], start
    while (found := find(ARRAY, search, end)) >= 0:
        search = found + ARRAY_LENGTH
        if buffer[search] not in SCALAR_STARTS or (stop := find(b"]", search, end) + 1) <= 0:
            continue
        first = stop
        for key, length in NEXT_ARRAYS:
            value = stop + length
            if buffer[stop:value] != key:
                continue
            if buffer[value] == BRACKET and buffer[value + 1] in SCALAR_STARTS:
                after = find(b"]", value, end) + 1
            elif buffer[value : value + 4] == b"null":
                after = value + 4
            else:
                break
            if not 0 < after <= end:
                break
            stop = after
        if stop > first:
            cuts.append((found, stop))
            search = stop
    return cuts


MAX_REPAIRS = 32
BAD_PATH = re.compile(r" - at `\$(?P<path>.*)`$")
PATH_STEPS = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def read_leniently(buffer: bytearray | bytes, start: int, end: int) -> tuple[Record, list[str]]:
    """Decode an awkward line; return it with remarks on what was replaced, or left out for its type.

    Raises ValueError with the reason when the line is no JSON object, or does not fit a record at all.
    """
    value, remark = decode_awkward(buffer, start, end)
    if not isinstance(value, dict):
        raise ValueError(f"a JSON {type(value).__name__}, not an object")
    remarks = [remark] if remark else []
    for _ in range(MAX_REPAIRS):
        try:
            return DECODER.decode(reencoded(value)), remarks
        except RecursionError:
            raise ValueError("nested too deeply") from None
        except msgspec.ValidationError as error:
            if not _leave_out(value, str(error)):
                raise ValueError(str(error)) from None
            remarks.append(f"left out: {error}")
    raise ValueError("too many values of unexpected types")


def decode_awkward(buffer: bytearray | bytes, start: int, end: int) -> tuple[Any, str | None]:
    """Return the value of an awkward line without the token arrays of its nodes, and a remark on what was replaced.

    Decoded to Python's objects, these arrays would take ten times their bytes. Arrays elsewhere, as in a message, stay.
    Raises ValueError when the line is no JSON at all.
    """
    cuts = find_arrays(buffer, start, end)
    try:
        value, remark = decode_leniently(b"".join(_numbered(_between(buffer, start, end, cuts))))
    except ValueError:
        if not cuts:
            raise
        return decode_leniently(copied(buffer, start, end))
    of_nodes = {number for node in _nodes_in(value) if (number := _taken_mark(node, len(cuts))) is not None}
    if len(of_nodes) == len(cuts):
        return value, remark
    try:
        kept = [cut for number, cut in enumerate(cuts) if number in of_nodes]
        return decode_leniently(b"".join(_between(buffer, start, end, kept)))
    except ValueError:
        value, remark = decode_leniently(b"".join(_between(buffer, start, end, cuts)))
        return value, "; ".join(filter(None, (remark, DAMAGED_ARRAYS)))


def _numbered(pieces: list[bytes | bytearray]) -> Iterator[bytes | bytearray]:
    for number, piece in enumerate(pieces):
        if number:
            yield MARKED % (MARK + number - 1)
        yield piece


def _nodes_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a record and of its traces, as far as they have the shape of some."""
    traces = value.get("traces") if isinstance(value, dict) else None
    for trace in (value, *(traces if isinstance(traces, list) else ())):
        nodes = trace.get("nodes") if isinstance(trace, dict) else None
        yield from (node for node in (nodes if isinstance(nodes, list) else ()) if isinstance(node, dict))


def _taken_mark(node: dict[str, Any], cuts: int) -> int | None:
    """Take the mark out of a node, and return the number of the cut that it stands for."""
    mark = node.get("_cut")
    if type(mark) is not int or not MARK <= mark < MARK + cuts:
        return None
    del node["_cut"]
    return mark - MARK


def _leave_out(value: Any, error: str) -> bool:
    """Take the part that a validation error names out of `value`; say whether that was possible."""
    match = BAD_PATH.search(error)
    # Inside a dictionary the error does not say which key: then the whole dictionary goes.
    path = match["path"].split("[...]")[0] if match else ""
    steps = [name or int(index) for name, index in PATH_STEPS.findall(path)]
    if not steps:
        return False
    for step in steps[:-1]:
        value = value[step]
    if isinstance(value, dict):
        return value.pop(steps[-1], NOTHING) is not NOTHING
    # A list keeps its length, since nodes name each other by their places in it.
    found, value[steps[-1]] = value[steps[-1]], {}
    return bool(found != {})
