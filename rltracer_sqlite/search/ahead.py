"""Reading texts ahead of who writes them: in one thread, from shard to shard, and only so far.

SQLite takes words in without the interpreter, so that a thread that decodes records gets on meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

from ..sources.base import SourceError
from ..sources.files import open_shard
from .jobs import Job
from .shard_texts import Row, ShardTexts, Text

BATCH_BYTES = 1 << 20  # of records that are read together
BATCH_ROWS = 2_000
AHEAD_BATCHES = 8  # that have been read, or are being read, and nobody has taken yet
AHEAD_BYTES = 8 << 20  # of records in them, where they are more than one


class Batch(NamedTuple):
    """Some trajectories of a shard, in the order in which they stand in it."""

    job: Job
    rows: Sequence[Row]
    bytes: int  # of records
    is_last: bool  # of the shard


def batches(job: Job, rows: Iterable[Row]) -> Iterator[Batch]:
    """Cut the rows of a shard into batches of about BATCH_BYTES; there is one even where there are no rows."""
    batch: list[Row] = []
    held = 0
    for row in rows:
        if held >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
            yield Batch(job, batch, held, is_last=False)
            batch, held = [], 0
        batch.append(row)
        held += max(row.byte_length, 0)
    yield Batch(job, batch, held, is_last=True)


def read_ahead(wanted: Iterable[Batch]) -> Generator[tuple[Batch, Sequence[Text] | None], None, None]:
    """Yield each batch with its texts, or None where its shard cannot be read; meanwhile the next ones are read.

    `wanted` is asked in the thread of who asks, since it has the connection.
    """
    waiting: deque[tuple[Batch, Future[Sequence[Text] | None]]] = deque()
    with Shards() as shards, ThreadPoolExecutor(1) as pool:
        try:
            for batch in wanted:
                waiting.append((batch, pool.submit(shards.read, batch)))
                while _is_enough([one for one, _ in waiting]):
                    yield _next(waiting)
            while waiting:
                yield _next(waiting)
        finally:
            pool.shutdown(cancel_futures=True)


def _is_enough(waiting: Sequence[Batch]) -> bool:
    held = sum(batch.bytes for batch in waiting)
    return len(waiting) >= AHEAD_BATCHES or (len(waiting) > 1 and held >= AHEAD_BYTES)


def _next(waiting: deque[tuple[Batch, Future[Sequence[Text] | None]]]) -> tuple[Batch, Sequence[Text] | None]:
    batch, future = waiting.popleft()
    return batch, future.result()


class Shards:
    """Reads batches one after the other, with one shard open: `with Shards() as shards:`."""

    def __init__(self) -> None:
        self.opened = ExitStack()
        self.texts: ShardTexts | None = None
        self.job: Job | None = None

    def __enter__(self) -> Shards:
        return self

    def __exit__(self, *error: object) -> None:
        self.opened.close()

    def read(self, batch: Batch) -> Sequence[Text] | None:
        """Return the texts of a batch, or None where its shard cannot be read."""
        try:
            if batch.job is not self.job:
                self._open(batch.job)
            return self.texts.read(batch.rows) if self.texts else None
        except (SourceError, OSError):
            self.texts = None
            return None

    def _open(self, job: Job) -> None:
        self.opened.close()
        self.job, self.texts = job, None
        reader = self.opened.enter_context(open_shard(job.root, job.shard.path))
        self.texts = ShardTexts(job.source, job.root, job.shard, reader)
