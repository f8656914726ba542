"""Cutting shards: however a file is cut into parts, their findings put together are what one scan yields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltracer_sqlite.index import parts
from rltracer_sqlite.index.plan import Job
from rltracer_sqlite.sources.base import START, NotRollouts, Position, Shard, Source
from rltracer_sqlite.sources.lines import Line, complete_lines, line_start
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from rltracer_sqlite.sources.prime_rl import scan as scanning
from rltracer_sqlite.sources.table import joined
from rltracer_sqlite.sources.table.built_in import chat
from tests.layouts import line, message, seal, trace

ASKED = [message("user", "6 * 7?"), message("assistant", "42")]
ROLLOUTS = {
    "record": lambda n: line(trace(ASKED, id=f"t{n}")),
    "windows": lambda n: line(trace(ASKED, id=f"w{n}"))[:-1] + b"\r\n",
    "long": lambda n: line(trace([message("user", "why? " * 400), ASKED[1]], id=f"l{n}")),
    "odd": lambda n: line(trace(ASKED, id=f"o{n}", metrics={"m": float("nan")})),
}
CHATS = {
    "record": lambda n: line({"messages": ASKED, "n": n}),
    "windows": lambda n: line({"messages": ASKED})[:-1] + b"\r\n",
    "long": lambda n: line({"messages": [message("user", "why? " * 400), ASKED[1]]}),
    "odd": lambda n: line({"messages": ASKED, "score": float("nan")}),
    "empty": lambda n: line({"messages": []}),
}
OTHERS = {
    "blank": lambda n: b"\n",
    "spaces": lambda n: b"  \r\n",
    "unknown": lambda n: line({"other": n}),
    "text": lambda n: b"no JSON at all\n",
    "list": lambda n: b"[1, 2]\n",
}
SOURCES: dict[str, tuple[Source, str, dict[str, Any]]] = {
    "rollouts": (PrimeRLSource(), "traces", {**ROLLOUTS, **OTHERS}),
    "a file of its own": (PrimeRLSource(), "file", {**ROLLOUTS, **OTHERS}),
    "chats": (chat(), "lines", {**CHATS, **OTHERS}),
}


class Here:
    """Scans parts where it is asked to."""

    def __init__(self, source: Source, root: Path) -> None:
        self.source, self.root = source, root

    def batches(self, part: parts.Part) -> Iterator[list[Any]]:
        return parts.scan_part(self.source, self.root, part)

    def drop(self, part: parts.Part) -> None:
        """Forget a part, of which nothing is kept."""


def drained(found: Iterator[Any]) -> list[Any]:
    kept: list[Any] = []
    try:
        kept.extend(found)
    except NotRollouts as error:
        kept.append(f"no rollouts: {error}")
    return kept


def by_parts(source: Source, root: Path, shard: Shard, start: Position = START) -> list[Any]:
    size = (root / shard.file).stat().st_size
    planned = parts.Parts(source, root, [job := Job(shard, 1, start, size, 0, again=False)])
    return drained(iter(parts.scan_with(planned, Here(source, root))(job)))


@pytest.fixture(autouse=True)
def frequent_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (scanning, joined):
        monkeypatch.setattr(module, "COMMIT_RECORDS", 3)
    monkeypatch.setattr(scanning, "PROBE_LINES", 8)
    monkeypatch.setattr(joined, "MOST_UNFIT", 6)


@pytest.mark.parametrize("name", SOURCES)
@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cuts_make_no_difference(
    name: str, data: st.DataObject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, layout, kinds = SOURCES[name]
    drawn = data.draw(st.lists(st.sampled_from(sorted(kinds)), max_size=24))
    content = b"".join(kinds[kind](number) for number, kind in enumerate(drawn))
    content = content[: len(content) - data.draw(st.integers(0, 30))]
    (tmp_path / "x.jsonl").write_bytes(content)
    shard = Shard("x.jsonl", "x.jsonl", layout)
    whole = drained(source.scan(tmp_path, shard, Position()))
    start = data.draw(st.sampled_from([Position(), *(one for one in whole if isinstance(one, Position))]))
    whole = drained(source.scan(tmp_path, shard, start))
    monkeypatch.setattr(parts, "PART_BYTES", data.draw(st.integers(1, len(content) + 1)))
    assert by_parts(source, tmp_path, shard, start) == whole


@given(lengths=st.lists(st.integers(0, 9), max_size=12), cuts=st.sets(st.integers(1, 60)))
def test_each_line_is_in_one_part(lengths: list[int], cuts: set[int]) -> None:
    reader = Memory(b"".join(b"x" * length + b"\n" for length in lengths) + b"torn")
    ends = sorted(cuts)
    found = []
    for cut, stop in zip([0, *ends], [*ends, None], strict=True):
        start = line_start(reader, cut, stop) if cut else 0
        if start is not None:
            found += [one.offset for one in complete_lines(reader, start, stop) if isinstance(one, Line)]
    assert found == [one.offset for one in complete_lines(reader) if isinstance(one, Line)]


class Memory:
    """Bytes as a reader gives them."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def size(self) -> int:
        return len(self.data)

    def pread(self, length: int, offset: int) -> bytes:
        return self.data[offset : offset + length]

    def read_into(self, target: memoryview, offset: int) -> int:
        part = self.pread(min(len(target), 5), offset)
        target[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(("has_table", "count"), [(True, 7), (False, 1)])
def test_a_sealed_chunk_is_cut_where_it_has_a_seek_table(
    has_table: bool, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zstandard

    source, file = PrimeRLSource(), tmp_path / "x.jsonl"
    file.write_bytes(b"".join(ROLLOUTS["record"](number) for number in range(30)) + b'{"cut')
    size = file.stat().st_size
    if has_table:
        seal(file)
    else:
        (tmp_path / "x.jsonl.zst").write_bytes(zstandard.compress(file.read_bytes()))
        file.unlink()
    monkeypatch.setattr(parts, "PART_BYTES", size // 7 + 1)
    shard = Shard("x.jsonl", "x.jsonl.zst", "traces")
    planned = parts.Parts(source, tmp_path, [job := Job(shard, 1, Position(), 999_999, 0, again=False)])
    assert len(planned.of(job)) == count
    assert by_parts(source, tmp_path, shard) == list(source.scan(tmp_path, shard, Position()))


def test_a_file_that_changes_between_two_parts_ends_where_it_was_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"".join(ROLLOUTS["record"](number) for number in range(10)))
    monkeypatch.setattr(parts, "PART_BYTES", file.stat().st_size // 3)
    source, shard = PrimeRLSource(), Shard("x.jsonl", "x.jsonl", "traces")
    planned = parts.Parts(source, tmp_path, [job := Job(shard, 1, Position(), file.stat().st_size, 0, again=False)])
    found = []
    for one in parts.scan_with(planned, Here(source, tmp_path))(job):
        found.append(one)
        if len(found) == 2:
            file.write_bytes(b"x" * 10 + file.read_bytes())
    reached = found[-1]
    assert isinstance(reached, Position)
    assert 0 < reached.offset < file.stat().st_size
    assert reached.line == sum(hasattr(one, "uid") for one in found)


def test_sources_without_parts_are_read_by_whole_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain:
        name = "plain"

        def scan(self, root: Path, shard: Shard, start: Position = START) -> Iterator[Any]:
            yield Position(json.loads((root / shard.file).read_bytes())["size"], 1)

    monkeypatch.setattr(parts, "PART_BYTES", 1)
    (tmp_path / "x").write_text('{"size": 12}')
    assert by_parts(Plain(), tmp_path, Shard("x", "x", "own")) == [Position(12, 1)]  # type: ignore[arg-type]
