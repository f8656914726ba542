"""Framing: whatever the bytes and the chunks, lines are what lies between newlines, at their true offsets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltracer_sqlite.sources import lines
from rltracer_sqlite.sources.base import LocatorError
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.lines import Line, Tail, complete_lines, decode_leniently, lines_before, reencoded
from tests.memory_reader import MemoryReader

PIECES = [
    b"\n",
    b"\r\n",
    b"\x0b",
    b"\x0c",
    b"\x1c",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\xe2\x80\xa9",
    b"\0",
    b"\xff",
    b"{}",
]
ANY_BYTES = st.lists(st.sampled_from(PIECES) | st.binary(max_size=20), max_size=40).map(b"".join)


def framed(reader: MemoryReader, start: int = 0) -> Iterator[tuple[int, bytes] | Tail]:
    for found in complete_lines(reader, start):
        yield found if isinstance(found, Tail) else (found.offset, bytes(found.buffer[found.start : found.end]))


def split(data: bytes, start: int = 0) -> list[tuple[int, bytes] | Tail]:
    *whole, last = data[start:].split(b"\n")
    found: list[tuple[int, bytes] | Tail] = []
    for text in whole:
        found.append((start, text))
        start += len(text) + 1
    return [*found, Tail(start, len(last))]


@settings(deadline=None, max_examples=200)
@given(ANY_BYTES, st.integers(1, 17), st.integers(1, 9), st.data())
def test_lines_are_what_lies_between_newlines(data: bytes, chunk: int, most: int, draw: st.DataObject) -> None:
    start = draw.draw(st.integers(0, len(data)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_BYTES", chunk)
        assert list(framed(MemoryReader(data, most), start)) == split(data, start)


@settings(deadline=None, max_examples=200)
@given(ANY_BYTES, st.integers(1, 17), st.integers(1, 9), st.data())
def test_lines_before_a_place_are_those_that_end_there(data: bytes, size: int, most: int, draw: st.DataObject) -> None:
    whole = [found for found in split(data, 0) if not isinstance(found, Tail)]
    count = draw.draw(st.integers(0, len(whole)))
    end = whole[count][0] if count < len(whole) else sum(len(line) + 1 for _, line in whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "FINISH_BYTES", size)
        assert list(lines_before(MemoryReader(data, most), end)) == whole[:count][::-1]


@pytest.mark.parametrize("length", [(4 << 20) - 1, 4 << 20, (4 << 20) + 1, 30 << 20])
def test_a_line_may_be_longer_than_the_buffer(length: int) -> None:
    data = b"a\n" + b"x" * length + b"\nb\n"
    assert [
        found if isinstance(found, Tail) else (found[0], len(found[1])) for found in framed(MemoryReader(data))
    ] == [
        (0, 1),
        (2, length),
        (length + 3, 1),
        Tail(length + 5, 0),
    ]


def test_a_short_line_costs_one_read_of_a_chunk_and_one_that_finds_the_end() -> None:
    reader = MemoryReader(b"x\n" * 1000)
    assert len(list(framed(reader))) == 1001
    assert reader.reads == 2


@pytest.mark.threat("T2")
def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "hole.jsonl").open("wb") as file:
        file.write(b"{}\n")
        file.truncate(1 << 40)  # a hole of a terabyte takes no room on the disk
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 8 << 20)
    with open_shard(tmp_path, "hole.jsonl") as reader:
        found = complete_lines(reader)
        first = next(found)
        assert isinstance(first, Line)
        assert first.length == 2
        with pytest.raises(LocatorError, match="at byte 3 is longer than"):
            next(found)


@pytest.mark.parametrize(
    ("line", "value", "remark"),
    [
        (b'{"a":NaN,"b":-Infinity}', {"a": None, "b": None}, "not finite"),
        (b'{"a":1e400}', {"a": None}, "not finite"),
        (b'{"a":1' + b"0" * 5000 + b"}", {"a": None}, "not finite"),
        (b'{"a":1' + b"0" * 100 + b"}", {"a": 10**100}, None),
        (b'{"a":"\xff"}', {"a": "\N{REPLACEMENT CHARACTER}"}, "invalid UTF-8 at byte 6"),
        (b'{"a":"\\ud83d\\ude00"}', {"a": "\N{GRINNING FACE}"}, None),
        (b'{"a":"x\\uDe00"}', {"a": "x\N{REPLACEMENT CHARACTER}"}, "surrogate"),
        (b'{"\\ud83d":1}', {"\N{REPLACEMENT CHARACTER}": 1}, "surrogate"),
        (b'{"a":"tab\tand\x00"}', {"a": "tab\tand\0"}, None),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}, None),
        ('{"a":"x\u2028y\u0085z"}'.encode(), {"a": "x\u2028y\u0085z"}, None),
    ],
)
def test_awkward_json_is_read_and_remarked_on(line: bytes, value: object, remark: str | None) -> None:
    found, said = decode_leniently(line)
    assert found == value
    assert said is None if remark is None else remark in (said or "")
    assert json.loads(reencoded(found)) == value


@pytest.mark.parametrize(
    "line", [b"", b"x", b'{"a":', b'{"a":1}}', b"[" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000]
)
def test_what_is_no_json_says_why(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"at character|nested too deeply"):
        decode_leniently(line)


def test_all_remarks_are_kept() -> None:
    _, remark = decode_leniently(b'{"a":NaN,"b":"\xff\\ud800"}')
    assert (remark or "").count(";") == 2
