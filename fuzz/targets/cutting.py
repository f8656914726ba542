"""Records without their token arrays give the same entries as whole ones."""

from __future__ import annotations

import json
from math import isinf

import msgspec

from rltracer_sqlite.sources.base import Entry, Problem, Shard
from rltracer_sqlite.sources.lines import Line
from rltracer_sqlite.sources.prime_rl import record_decoding
from rltracer_sqlite.sources.prime_rl.record_decoding import (
    DECODER,
    Record,
    read_leniently,
    read_record,
    without_arrays,
)
from rltracer_sqlite.sources.prime_rl.scan import _found as found_in

from ..target import Target
from .traces import WORDS, trace_seeds

SHARD = Shard("a.jsonl", "a.jsonl", "traces", 1, "train")


def entries_of(record: Record, data: bytes) -> list[Entry | Problem] | str:
    """Return what a record gives, or the kind of error that it gives."""
    try:
        return list(found_in(record, Line(bytearray(data), 0, len(data) - 1, 0), SHARD, 1))
    except (ValueError, RecursionError) as error:
        return type(error).__name__


def check(data: bytes) -> None:
    """A line that is decoded after cutting gives what it gives whole, and so does one that is read leniently."""
    line = data[1:].split(b"\n")[0] + b"\n"
    shorter = without_arrays(line, 0, len(line) - 1)
    assert without_arrays(b"x" + line + line, 1, len(line)) == shorter, "a cut looks beyond its line"
    try:
        whole = DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        whole = None
    expected = entries_of(whole, line) if whole is not None else ""
    if isinstance(expected, list):
        check_awkward(line.lstrip(b" \t\r"), expected, line)
    try:
        cut, _ = read_record(line, 0, len(line) - 1)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return
    if whole is not None:
        assert entries_of(cut, line) == expected


def check_awkward(line: bytes, expected: list[Entry | Problem], told: bytes) -> None:
    """A line with a value that JSON has not gives what it gives without it, unless it has numbers beyond any double."""
    infinite: list[bool] = []
    json.loads(
        line.decode(errors="replace"), parse_float=lambda text: infinite.append(isinf(float(text))), parse_int=str
    )
    if any(infinite):
        return  # read leniently they are null, and a field that has to be there may be one
    awkward = b'{"_awkward":NaN' + (b"" if line[1:].lstrip()[:1] == b"}" else b",") + line[1:]
    try:
        record, _ = read_leniently(awkward, 0, len(awkward) - 1)
    except ValueError as error:
        assert "nested too deeply" in str(error), error
        return
    assert entries_of(record, told) == expected


def seeds() -> list[bytes]:
    """Return one record a seed, with and without tokens."""
    lines = {line for seed in trace_seeds() for line in seed[1:].split(b"\n") if line}
    return [b"\0" + line for line in sorted(lines, key=len)][:60]


KEYS = tuple(key.decode() for key, _ in record_decoding.NEXT_ARRAYS)
TARGETS = {
    "cutting": Target(
        "cutting", "cut records equal whole ones", check, seeds, "json", (*WORDS, *KEYS, ',"token_ids":[')
    )
}
