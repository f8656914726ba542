"""Reading the texts of a shard's trajectories, in the order in which they stand in the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

from ..sources.base import Locator, LocatorError, Source
from ..sources.files import MAX_RECORD_BYTES, ByteReader
from ..sources.places import Root
from .document import document
from .jobs import TextShard
from .records import TextRecord, decode_record, record_text

PLAIN_RECORDS = {"prime-rl"}  # sources whose records `records` reads straight from their bytes
BATCH_BYTES = 8 << 20  # of records that are read ahead
BATCH_ROWS = 2_000


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
    """The text of a trajectory, None where its record cannot be read; `size` is in bytes of UTF-8."""

    row: Row
    text: str | None
    digest: int
    size: int


class ShardTexts:
    """Reads texts out of one shard that stays open; every record is decoded once, however many traces it holds."""

    def __init__(self, source: Source, root: Root, shard: TextShard, reader: ByteReader) -> None:
        self.source, self.root, self.shard, self.reader = source, root, shard, reader
        self.is_plain = source.name in PLAIN_RECORDS
        self.place: tuple[int, int] | None = None
        self.record: TextRecord | None = None

    def read(self, rows: Sequence[Row]) -> list[Text]:
        """Return the texts of some trajectories."""
        return [self._read(row) for row in rows]

    def _read(self, row: Row) -> Text:
        text = self._plain_text(row) if self.is_plain else None
        if text is None:
            text = self._loaded_text(row)
        encoded = (text or "").encode()
        digest = int.from_bytes(blake2b(encoded, digest_size=8).digest(), "big", signed=True)
        return Text(row, text, digest, len(encoded))

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
            return document(self.source.load(self.root, [locator])).text
        except (LocatorError, OSError, RecursionError):
            return None


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Cut rows into batches of about BATCH_BYTES of records."""
    batch: list[Row] = []
    held = 0
    for row in rows:
        batch.append(row)
        held += row.byte_length
        if held >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
