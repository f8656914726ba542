"""Seal a JSONL chunk as the stream layout does: zstd in the seekable format, written by hand.

The format: contrib/seekable_format/zstd_seekable_compression_format.md in the zstd repository. Every frame is an
ordinary zstd frame; a last skippable frame holds the table of their sizes, which plain decoders pass over.
"""

from __future__ import annotations

import struct
from pathlib import Path

import zstandard

SKIPPABLE_MAGIC = 0x184D2A5E
FOOTER_MAGIC = 0x8F92EAB1
FRAME_BYTES = 4096  # the real writer takes 4 MiB; small frames give a small chunk several of them


def seal(path: Path, frame_bytes: int = FRAME_BYTES, keep: bool = False) -> Path:
    """Turn a plain chunk into its sealed twin and return that; `keep` leaves the plain one beside it.

    Frames end after `frame_bytes` of the plain bytes, wherever in a line or a character that is.
    """
    data = path.read_bytes()
    compressor = zstandard.ZstdCompressor(level=3, write_content_size=False)
    pieces = [data[start : start + frame_bytes] for start in range(0, len(data), frame_bytes)]
    frames = [compressor.compress(piece) for piece in pieces]
    sealed = path.with_name(path.name + ".zst")
    draft = sealed.with_name(sealed.name + ".tmp")
    draft.write_bytes(b"".join(frames) + seek_table([(len(f), len(p)) for f, p in zip(frames, pieces, strict=True)]))
    draft.rename(sealed)
    if not keep:
        path.unlink()
    return sealed


def seek_table(sizes: list[tuple[int, int]]) -> bytes:
    """Return the skippable frame that lists (compressed, decompressed) sizes, without checksums."""
    entries = b"".join(struct.pack("<II", *size) for size in sizes)
    footer = struct.pack("<IBI", len(sizes), 0, FOOTER_MAGIC)
    return struct.pack("<II", SKIPPABLE_MAGIC, len(entries) + len(footer)) + entries + footer
