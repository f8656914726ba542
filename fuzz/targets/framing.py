"""Lines of bytes, and JSON by two decoders."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from rltracer_sqlite.sources import lines
from rltracer_sqlite.sources.base import LocatorError
from rltracer_sqlite.sources.lines import Tail, complete_lines, decode_leniently, reencoded
from tests.memory_reader import MemoryReader

from ..invariants import patched
from ..target import Target


def check_framing(data: bytes) -> None:
    """Lines by small pieces are what lies between newlines, from any offset on."""
    head, data = data[:2].ljust(2, b"\0"), data[2:]
    chunk, most = 1 + head[0] % 37, 1 + head[1] % 23
    start = len(data) * chunk // 41
    with patched(lines, CHUNK_BYTES=chunk, MAX_LINE_BYTES=200):
        found, stopped = [], False
        try:
            for one in complete_lines(MemoryReader(data, most), start):
                if isinstance(one, Tail):
                    found.append((one.offset, data[one.offset : one.offset + one.length], "tail"))
                else:
                    found.append((one.offset, bytes(one.buffer[one.start : one.end]), "line"))
        except LocatorError:
            stopped = True
    pieces = data[start:].split(b"\n")
    expected, at = [], start
    for number, piece in enumerate(pieces):
        expected.append((at, piece, "tail" if number == len(pieces) - 1 else "line"))
        at += len(piece) + 1
    if stopped:
        assert max(map(len, pieces)) > 200 - 64
        assert found == expected[: len(found)]
    else:
        assert found == expected


def framing_seeds() -> list[bytes]:
    return [
        b"\5\3",
        b"\1\1a\nb\n",
        b"\x10\7" + b'{"a":1}\n' * 9,
        b"\3\2\n\r\n\xe2\x80\xa8\n\xc2\x85",
        b"\x20\x01" + b"x" * 90,
    ]


def check_json(data: bytes) -> None:
    """Whatever msgspec reads, json reads equally; whatever the lenient reader gives is strict JSON again."""
    try:
        strict = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        strict = msgspec.UNSET
    try:
        value, remark = decode_leniently(data)
    except ValueError as error:
        assert strict is msgspec.UNSET or "nested too deeply" in str(error)
        assert str(error)
        return
    if strict is not msgspec.UNSET:
        if remark is None:
            assert same(strict, value)
        else:
            assert "not finite" in remark  # a whole number that no double can hold
    try:
        again = json.loads(reencoded(value))
    except RecursionError:
        return
    assert same(again, value)


def same(one: Any, other: Any) -> bool:
    """Say whether two values are equal, 1 and 1.0 and True apart."""
    try:
        return json.dumps(one, sort_keys=True, allow_nan=False) == json.dumps(other, sort_keys=True, allow_nan=False)
    except RecursionError:
        return True
    except ValueError as error:
        return "digits" in str(error)


def json_seeds() -> list[bytes]:
    return [
        b'{"a":1,"b":[true,false,null,-0.5e3,"x\\u00e9\\ud83d\\ude00"]}', b'{"a":NaN,"b":-Infinity}', b'{"c":1e999}',
        b'"\\ud800"', b"\xef\xbb\xbf{}", b'{"a":"\xff"}', b"[1,2,[3,[4]]]", b'{"a":1,"a":2}', b"1234567890123456789012",
        b'{"\\udc00\\ud800":0}', b"1" * 320, b'" \x00 "', b"-0", b"1E400", b"0.1e-400",
    ]  # fmt: skip


WORDS = (
    '"',
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\\u",
    "\\ud83d",
    "\\ude00",
    "null",
    "true",
    "NaN",
    "Infinity",
    "1e999",
    "\n",
)
TARGETS = {
    "framing": Target(
        "framing", "lines by pieces equal lines at once", check_framing, framing_seeds, "bytes", ("\n", "\r\n")
    ),
    "json": Target("json", "msgspec equals json; lenient JSON is JSON again", check_json, json_seeds, "bytes", WORDS),
}
