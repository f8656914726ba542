"""Reading the texts of a shard's trajectories, in the order in which they stand in the file."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from ..index.database import LARGEST_VALUE
from ..sources.base import Locator, LocatorError, MessageSource, Source
from ..sources.files import MAX_RECORD_BYTES
from ..sources.places import Root
from ..sources.readers import ByteReader
from .characters import apart, holds_some
from .document import document, messages_text
from .jobs import TextShard
from .record_texts import TextRecord, decode_record, record_text
from .tables import EMPTY

PLAIN_RECORDS = {"prime-rl"}  # sources whose records `records` reads straight from their bytes
HASHED_CHARACTERS = 1 << 20  # at once
LONGEST_TEXT = LARGEST_VALUE - 4096  # bytes of UTF-8 that SQLite takes in of one text


class Row(NamedTuple):
    """A trajectory whose text is to be read; `digest` is that of its text when it was last read."""

    id: int
    uid: str
    byte_offset: int
    byte_length: int
    item: int | None
    line: int | None
    digest: int | None


class Text(NamedTuple):
    """The text of a trajectory as its words are taken in, None where its record cannot be read.

    `digest` is that of the text itself, and `size` its bytes of UTF-8.
    """

    row: Row
    text: str | None
    digest: int
    size: int


class ShardTexts:
    """Reads texts out of one shard that stays open; every record is decoded once, however many traces it holds."""

    def __init__(self, source: Source, root: Root, shard: TextShard, reader: ByteReader) -> None:
        self.source, self.root, self.shard, self.reader = source, root, shard, reader
        self.is_plain = source.name in PLAIN_RECORDS
        self.messages = source.messages(root, reader) if isinstance(source, MessageSource) else None
        self.place: tuple[int, int] | None = None
        self.record: TextRecord | None = None

    def read(self, rows: Sequence[Row]) -> list[Text]:
        """Return the texts of some trajectories."""
        texts = [self._read(row) for row in rows]
        self.place = self.record = None  # it can be long
        return texts

    def _read(self, row: Row) -> Text:
        text = self._plain_text(row) if self.is_plain else None
        if text is None:
            text = self._loaded_text(row)
        if text is None:
            return Text(row, None, EMPTY, 0)
        digest, size, holds = _facts(text)
        return Text(row, _words(text) if holds or size > LONGEST_TEXT else text, digest, size)

    def _plain_text(self, row: Row) -> str | None:
        place = (row.byte_offset, row.byte_length)
        if place != self.place:
            self.place, self.record = place, None
            if not 0 < row.byte_length <= MAX_RECORD_BYTES:
                return None
            try:
                self.record = decode_record(self.reader.pread(row.byte_length, row.byte_offset))
            except (LocatorError, OSError):
                return None
        return record_text(self.record, row.item, row.uid, self.shard.path)

    def _loaded_text(self, row: Row) -> str | None:
        locator = Locator(
            row.uid, self.shard.path, self.shard.layout, row.byte_offset, row.byte_length, row.item, row.line
        )
        try:
            if self.messages:
                return messages_text(self.messages(locator))
            return document(self.source.load(self.root, [locator])).text
        except (LocatorError, OSError, RecursionError):
            return None


def _words(text: str) -> str:
    """Return a text as its words are taken in, cut where a connection would take in no more."""
    words = apart(text)
    return words if len(words) <= LONGEST_TEXT // 4 else words.encode()[:LONGEST_TEXT].decode("utf-8", "ignore")


def _facts(text: str) -> tuple[int, int, bool]:
    """Return 64 bits of BLAKE2b of a text, its bytes of UTF-8, and whether it may have characters to be set apart.

    Of the bytes of a long text there is never a copy.
    """
    hashed, size, holds, is_ascii = blake2b(digest_size=8), 0, False, text.isascii()
    for start in range(0, len(text), HASHED_CHARACTERS):
        part = text[start : start + HASHED_CHARACTERS].encode()
        hashed.update(part)
        size += len(part)
        holds = holds or (not is_ascii and holds_some(part))
    return int.from_bytes(hashed.digest(), "big", signed=True), size, holds
