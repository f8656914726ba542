"""How large an image inside a record is, from its first bytes, so that a page keeps its place before it is drawn."""

from __future__ import annotations

import base64
import binascii
import struct

HEAD = 1 << 17  # characters of a data URI that are looked at
LARGEST_SHOWN = 384  # pixels on the page, in either direction


def shown_size(address: str) -> tuple[int, int] | None:
    """Return the width and height that an image in a data URI is shown with, or None where its head says nothing."""
    size = image_size(_head(address))
    if size is None or not all(size):
        return None
    scale = min(1, LARGEST_SHOWN / max(size))
    return max(round(size[0] * scale), 1), max(round(size[1] * scale), 1)


def image_size(head: bytes) -> tuple[int, int] | None:
    """Return the width and height of a PNG, GIF, JPEG or WebP from its first bytes, or None."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR":
            width, height = struct.unpack(">II", head[16:24])
            return width, height
        if head[:6] in (b"GIF87a", b"GIF89a"):
            width, height = struct.unpack("<HH", head[6:10])
            return width, height
        if head.startswith(b"\xff\xd8"):
            return _jpeg_size(head)
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return _webp_size(head)
    except (struct.error, IndexError):
        pass  # the head ends too early
    return None


def _head(address: str) -> bytes:
    data = "".join(address[:HEAD].partition(",")[2].split())
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    """Return the size in a JPEG's frame header (ITU-T T.81, B.2.2): the first segment SOF0 to SOF15 that is one."""
    at = 2
    while head[at] == 0xFF:
        marker, length = head[at + 1], struct.unpack(">H", head[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        at += 2 + length
    return None


def _webp_size(head: bytes) -> tuple[int, int] | None:
    """Return the size in a WebP's first chunk (RFC 9649): extended, lossless or lossy."""
    kind = head[12:16]
    if kind == b"VP8X" and len(head) >= 30:
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if kind == b"VP8L":
        bits = struct.unpack("<I", head[21:25])[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", head[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None
