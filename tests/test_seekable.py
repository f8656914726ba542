"""Sealed chunks: random access gives what decompressing the whole gives, and no file can make it take much memory."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rltracer_sqlite.sources.base import LocatorError
from rltracer_sqlite.sources.files import open_shard, read_bytes
from rltracer_sqlite.sources.seekable import SeekableZstd
from tests.layouts import seal
from tests.layouts.seekable import FOOTER_MAGIC, SKIPPABLE_MAGIC, seek_table

TEXT = b"".join(b'{"line":%d}\n' % number for number in range(3000))


def sealed(folder: Path, data: bytes, frame_bytes: int = 4096) -> Path:
    path = folder / "a.jsonl"
    path.write_bytes(data)
    return seal(path, frame_bytes)


def written(folder: Path, packed: bytes) -> Path:
    (folder / "a.jsonl.zst").write_bytes(packed)
    return folder


def whole(folder: Path, block: int = 1000) -> bytes:
    """Return the shard as a scan reads it, block by block."""
    parts, buffer, offset = [], bytearray(block), 0
    with open_shard(folder, "a.jsonl") as reader:
        while count := reader.read_into(memoryview(buffer), offset):
            parts.append(bytes(buffer[:count]))
            offset += count
        assert reader.size() == offset
    return b"".join(parts)


def packed(data: bytes, **options: bool) -> bytes:
    return zstandard.ZstdCompressor(level=3, **{"write_content_size": False, **options}).compress(data)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, len(TEXT) + 50), st.integers(1, 9000)), max_size=8), st.integers(50, 5000))
def test_random_access_gives_what_the_whole_holds(
    tmp_path_factory: pytest.TempPathFactory, places: list[tuple[int, int]], frame_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("sealed")
    sealed(folder, TEXT[:9000], frame_bytes)
    with open_shard(folder, "a.jsonl") as reader:
        assert [reader.pread(length, offset) for offset, length in places] == [
            TEXT[:9000][offset : offset + length] for offset, length in places
        ]


@pytest.mark.parametrize("frame_bytes", [1, 7, 4096, len(TEXT), 1 << 20])
def test_reading_on_gives_the_whole(tmp_path: Path, frame_bytes: int) -> None:
    sealed(tmp_path, TEXT[:500] if frame_bytes == 1 else TEXT, frame_bytes)
    assert whole(tmp_path) == (TEXT[:500] if frame_bytes == 1 else TEXT)


def test_one_record_decompresses_the_frames_it_lies_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed(tmp_path, TEXT)
    seen: list[int] = []
    plain = SeekableZstd._frame

    def counted(self: SeekableZstd, number: int) -> bytes:
        seen.append(number)
        return plain(self, number)

    monkeypatch.setattr(SeekableZstd, "_frame", counted)
    assert read_bytes(tmp_path, "a.jsonl", 8190, 6) == TEXT[8190:8196]
    assert seen == [1, 2]


@pytest.mark.parametrize("checksums", [False, True])
def test_files_without_a_seek_table_are_read_from_their_start(tmp_path: Path, checksums: bool) -> None:
    frames = [packed(part, write_checksum=checksums) for part in (TEXT[:5000], TEXT[5000:])]
    skipped = struct.pack("<II", SKIPPABLE_MAGIC - 3, 5) + b"aside"
    written(tmp_path, frames[0] + skipped + frames[1])
    assert whole(tmp_path) == TEXT
    with open_shard(tmp_path, "a.jsonl") as reader:  # forwards, back, and beyond the end
        assert [reader.pread(9, offset) for offset in (6000, 100, 7000, len(TEXT))] == [
            TEXT[6000:6009],
            TEXT[100:109],
            TEXT[7000:7009],
            b"",
        ]


def with_checksums(sizes: list[tuple[int, int]]) -> bytes:
    entries = b"".join(struct.pack("<III", *size, 0) for size in sizes)
    return struct.pack("<II", SKIPPABLE_MAGIC, len(entries) + 9) + entries + struct.pack("<IBI", 1, 0x80, FOOTER_MAGIC)


FRAME = packed(TEXT)
NOT_BELIEVED = {
    "no content claimed": seek_table([(len(FRAME), 0)]),
    "too short for the file": seek_table([(len(FRAME) - 1, len(TEXT))]),
    "too long for the file": seek_table([(len(FRAME) + 1, len(TEXT))]),
    "more frames than bytes": seek_table([(len(FRAME), len(TEXT))])[:-9]
    + struct.pack("<IBI", 1 << 31, 0, FOOTER_MAGIC),
    "a frame of 4 GiB": seek_table([(len(FRAME), (1 << 32) - 1)]),
    "no table at all": b"",
    "with checksums": with_checksums([(len(FRAME), len(TEXT))]),
}


@pytest.mark.parametrize("table", NOT_BELIEVED.values(), ids=NOT_BELIEVED)
def test_a_seek_table_that_cannot_be_right_is_not_used(tmp_path: Path, table: bytes) -> None:
    assert whole(written(tmp_path, FRAME + table)) == TEXT


@pytest.mark.parametrize("size", [1, len(TEXT) - 1, len(TEXT) + 1, 1 << 24])
def test_a_seek_table_that_lies_is_found_out(tmp_path: Path, size: int) -> None:
    written(tmp_path, FRAME + seek_table([(len(FRAME), size)]))
    with pytest.raises(LocatorError, match=r"a\.jsonl\.zst is damaged"):
        whole(tmp_path)


def test_frames_that_swap_their_sizes_are_found_out(tmp_path: Path) -> None:
    first, second = packed(TEXT[:4000]), packed(TEXT[4000:5000])
    written(tmp_path, first + second + seek_table([(len(first), 1000), (len(second), 4000)]))
    with pytest.raises(LocatorError, match="damaged"):
        whole(tmp_path)


@pytest.mark.parametrize("kept", [1, 5, 20, -1, -10])
def test_a_file_that_was_cut_off_says_so(tmp_path: Path, kept: int) -> None:
    written(tmp_path, (packed(TEXT[:7000]) + FRAME)[:kept])
    with pytest.raises(LocatorError, match="damaged after byte"):
        whole(tmp_path)


@pytest.mark.parametrize("data", [b"plain text\n", FRAME + b"trailing", b"\x28\xb5\x2f\xfd" + b"\xff" * 40])
def test_what_is_no_zstd_says_so(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(LocatorError, match="damaged"):
        whole(written(tmp_path, data))


@pytest.mark.parametrize("table", [False, True])
def test_a_checksum_finds_a_flipped_byte(tmp_path: Path, table: bool) -> None:
    frame = bytearray(packed(os.urandom(50_000), write_checksum=True))
    frame[25_000] ^= 1
    written(tmp_path, bytes(frame) + (seek_table([(len(frame), 50_000)]) if table else b""))
    with pytest.raises(LocatorError, match="damaged"):
        whole(tmp_path)


def test_an_empty_file_is_an_empty_shard(tmp_path: Path) -> None:
    assert whole(written(tmp_path, b"")) == b""
    assert whole(written(tmp_path, packed(b"") + seek_table([]))) == b""


WINDOW_OF_2_GIB = b"\x28\xb5\x2f\xfd" + bytes([0, 21 << 3]) + b"\x01\x00\x00"
CONTENT_OF_2_EIB = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 61) + b"\x01\x00\x00"


@pytest.mark.threat("T3")
@pytest.mark.parametrize("frame", [WINDOW_OF_2_GIB, CONTENT_OF_2_EIB])
@pytest.mark.parametrize("table", [False, True])
def test_frames_that_claim_much_are_refused(tmp_path: Path, frame: bytes, table: bool) -> None:
    written(tmp_path, frame + (seek_table([(len(frame), 1 << 20)]) if table else b""))
    with pytest.raises(LocatorError, match="damaged"):
        whole(tmp_path)


READ_ALL = """
import sys
from pathlib import Path
from rltracer_sqlite.sources.base import LocatorError
from rltracer_sqlite.sources.files import open_shard
buffer, offset = bytearray(1 << 20), 0
try:
    with open_shard(Path(sys.argv[1]), "a.jsonl") as reader:
        while count := reader.read_into(memoryview(buffer), offset):
            offset += count
except LocatorError:
    pass
# Not ru_maxrss, which a process takes over from the one that started it.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(offset, int(status["VmHWM"].split()[0]) // 1024)
"""


def zeros(size: int) -> bytes:
    """Return one zstd frame of zeros that gives its size in its header: blocks of 128 KiB of one repeated byte."""
    header = b"\x28\xb5\x2f\xfd" + bytes([0xC0, 11 << 3]) + struct.pack("<Q", size)  # with a window of 2 MiB
    blocks = size >> 17
    parts = [(number == blocks - 1) | 1 << 1 | 1 << 17 << 3 for number in range(blocks)]
    return header + b"".join(part.to_bytes(3, "little") + b"\0" for part in parts)


@pytest.mark.threat("T3")
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")
@pytest.mark.parametrize("table", ["none", "true", "lying"])
def test_a_frame_of_2_gib_takes_little_memory(tmp_path: Path, table: str) -> None:
    frame = zeros(2 << 30)
    size = {"true": 2 << 30, "lying": 4 << 20}.get(table)
    written(tmp_path, frame + (seek_table([(len(frame), size)]) if size else b""))
    run = [sys.executable, "-c", READ_ALL, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    read, peak = map(int, done.stdout.split())
    assert read == (0 if table == "lying" else 2 << 30)
    assert peak < 100  # MiB
