"""zstd files with and without a seek table: any piece is the piece of the whole."""

from __future__ import annotations

from pathlib import Path

import zstandard

from rltracer_sqlite.sources import seekable
from rltracer_sqlite.sources.base import LocatorError
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.readers import ByteReader
from tests.layouts.seekable import seal

from ..invariants import patched
from ..scratch import scratch
from ..target import Target

MOST = 1 << 20  # uncompressed bytes that are compared; a small file can unpack to far more


def check(data: bytes) -> None:
    """Reading in pieces, in any order, gives the bytes that reading from the start gives, or says that it cannot."""
    root, steps, packed = scratch("zstd"), data[:4].ljust(4, b"\7"), data[4:]
    (root / "a.jsonl.zst").write_bytes(packed)
    with patched(seekable, MAX_FRAME_BYTES=1 << 18, MAX_WINDOW_BYTES=1 << 20, BLOCK=1 << 16):
        try:
            with open_shard(root, "a.jsonl") as reader:
                whole = reader.pread(MOST, 0)
                check_pieces(reader, whole, steps)
                if len(whole) < MOST:
                    assert reader.size() == len(whole)
                    assert reader.pread(1, len(whole)) == b""
        except LocatorError as error:
            assert "damaged" in str(error), error
            check_what_is_there(root, steps)


def check_pieces(reader: ByteReader, whole: bytes, steps: bytes) -> None:
    """Compare pieces of the sizes and from the places that the first bytes of the input say."""
    for step in steps:
        offset, length = step * len(whole) // 256, 1 + step
        assert reader.pread(length, offset) == whole[offset : offset + length]
    target = bytearray(1 + steps[0])
    with memoryview(target) as view:
        count = reader.read_into(view, steps[1])
    assert bytes(target[:count]) == whole[steps[1] : steps[1] + count]
    assert count or steps[1] >= len(whole)


def check_what_is_there(root: Path, steps: bytes) -> None:
    """Pieces of a damaged file are refused, or are what they are in another order."""
    found = {}
    for step in (*steps, *reversed(steps)):
        try:
            with open_shard(root, "a.jsonl") as reader:
                piece = reader.pread(1 + step, step)
        except LocatorError:
            continue
        assert found.setdefault(step, piece) == piece


def seeds() -> list[bytes]:
    """Return files with a seek table, with a checksum, of one frame, of several, and of none."""
    folder, plain = scratch("zstd-seeds"), b"".join(b'{"id":"%d"}\n' % number for number in range(200))
    found = []
    for size in (100, 1000, 1 << 20):
        (folder / "a.jsonl").write_bytes(plain)
        found.append(seal(folder / "a.jsonl", size).read_bytes())
    one = zstandard.ZstdCompressor(level=3)
    checked = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)
    found += [
        one.compress(plain),
        one.compress(plain) + checked.compress(b"x" * 5000),
        checked.compress(plain),
        b"",
        one.compress(b""),
    ]
    return [b"\x01\x40\x90\xff" + data for data in found]


TARGETS = {"zstd": Target("zstd", "pieces of a compressed file, with and without a seek table", check, seeds)}
