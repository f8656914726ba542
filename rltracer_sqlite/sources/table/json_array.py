"""Where the records of a JSON array are, found without holding more of the file than a piece."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..readers import ByteReader

PIECE = 1 << 20
SPACE = b" \t\r\n\xef\xbb\xbf"
IN_TEXT = re.compile(rb'[\\"]')
OUTSIDE = re.compile(rb'["\[\]{}]')


def is_array(reader: ByteReader) -> bool:
    """Say whether a file begins like a JSON array."""
    return reader.pread(64, 0).lstrip(SPACE)[:1] == b"["


def array_elements(reader: ByteReader) -> Iterator[tuple[int, int] | None]:
    """Yield (offset, length) of each object of a JSON array, then None if the array has no end yet."""
    depth, started, at = 0, 0, 0
    in_text = escaped = False
    while piece := reader.pread(PIECE, at):
        position = 0
        while position < len(piece):
            if escaped:
                escaped, position = False, position + 1
                continue
            match = (IN_TEXT if in_text else OUTSIDE).search(piece, position)
            if match is None:
                break
            mark, position = match[0], match.end()
            if mark == b"\\":
                escaped = True
            elif mark == b'"':
                in_text = not in_text
            elif mark in b"[{":
                depth += 1
                started = at + match.start() if depth == 2 else started
            else:
                depth -= 1
                if depth == 1:
                    yield started, at + position - started
                if depth == 0:
                    return
        at += len(piece)
    yield None
