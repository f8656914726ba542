"""The size of an image from its first bytes, whatever the bytes are."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_rltracer.image_size import image_size, shown_size

from .conftest import png

GIF = b"GIF89a" + struct.pack("<HH", 30, 20) + bytes(3)
JPEG = (
    b"\xff\xd8\xff\xe0" + struct.pack(">H", 6) + bytes(4) + b"\xff\xc2" + struct.pack(">HBHH", 11, 8, 20, 30) + bytes(4)
)
WEBP = b"RIFF\0\0\0\0WEBP"
LOSSY = WEBP + b"VP8 " + bytes(10) + struct.pack("<HH", 30, 20)
LOSSLESS = WEBP + b"VP8L" + bytes(5) + struct.pack("<I", 29 | 19 << 14)
EXTENDED = WEBP + b"VP8X" + bytes(8) + (29).to_bytes(3, "little") + (19).to_bytes(3, "little")


@pytest.mark.parametrize("head", [png(30, 20), GIF, JPEG, LOSSY, LOSSLESS, EXTENDED])
def test_every_kind_tells_its_size(head):
    assert image_size(head) == (30, 20)
    assert image_size(head[:20]) in (None, (30, 20))


@given(st.sampled_from([b"", b"\xff\xd8", b"GIF89a", WEBP + b"VP8 ", b"\x89PNG\r\n\x1a\n"]), st.binary(max_size=60))
def test_no_bytes_are_an_error(start, rest):
    image_size(start + rest)


@pytest.mark.parametrize(
    ("size", "shown"), [((30, 20), (30, 20)), ((3840, 1920), (384, 192)), ((1, 100_000), (1, 384)), ((0, 5), None)]
)
def test_large_images_are_shown_smaller(size, shown):
    head = png(1, 1)[:16] + struct.pack(">II", *size)
    assert shown_size("data:image/png;base64," + base64.b64encode(head).decode()) == shown


@pytest.mark.parametrize("address", ["", "data:image/png;base64,", "data:image/png;base64,AAA", "data:,%%%"])
def test_what_is_no_image_has_no_size(address):
    assert shown_size(address) is None
