"""Building the full text of an index and keeping it up: a second pass over the records, and only over new ones."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ..index.database import begin_writing
from ..roots import Roots
from ..sources.base import SourceError
from ..sources.files import open_shard
from .jobs import Job, find_work
from .read import Row, ShardTexts, Text, batches
from .tables import DIGESTS, TEXT_TABLE, has_text, make_text_tables, text_coverage
from .write import TextWriter, bulk_writing, writing

Progress = Callable[[int, int], None]  # bytes of records read so far, bytes to read

WORN_SHARE = 4  # words of removed trajectories stay until they are more than one in so many


@dataclass
class TextRefreshed:
    """What one pass did, and what can be searched now."""

    trajectories: int = 0  # whose text was added
    bytes: int = 0  # of text, as UTF-8
    seconds: float = 0.0
    unreadable: int = 0  # records that could not be read
    changed: int = 0  # trajectories whose text is not what it was: their old words can only go by building anew
    rebuilt: bool = False
    skipped: dict[str, str] = field(default_factory=dict)  # runs with something new that could not be read, and why
    can_rebuild: bool = True
    searchable: int = 0
    total: int = 0


def refresh_text(
    connection: sqlite3.Connection,
    roots: Roots,
    progress: Progress | None = None,
    rebuild: bool = False,
    may_rebuild: bool = True,
) -> TextRefreshed:
    """Bring the full text up to date with the index, making it where there is none.

    `connection` comes from `open_for_writing`. Reads the records of new trajectories, and of files that were
    rewritten. SQLite cannot take the old words of a rewritten trajectory out again without its old text, so then
    everything is built anew, unless that would lose a run that cannot be read now, or `may_rebuild` forbids the time
    that it takes: see `TextRefreshed.changed`.
    """
    started = time.perf_counter()
    begin_writing(connection)
    if rebuild or not has_text(connection):
        make_text_tables(connection)
    work = find_work(connection, roots)
    done = TextRefreshed(rebuilt=rebuild, skipped=work.unread, can_rebuild=may_rebuild and work.is_all and not rebuild)
    with bulk_writing(connection, sum(job.bytes for job in work.jobs)):
        _read_shards(connection, work.jobs, done, progress)
    if done.can_rebuild and (done.changed or (work.jobs and _is_worn(connection))):
        return refresh_text(connection, roots, progress, rebuild=True)
    done.searchable, done.total = text_coverage(connection)
    done.seconds = time.perf_counter() - started
    return done


def text_follower(find_roots: Callable[[], Roots]) -> Callable[[sqlite3.Connection, Progress | None], str]:
    """Return what brings the full text up to date while runs are followed; it returns what could not be read.

    Words of rewritten records stay until somebody builds anew: that takes minutes, and finds less meanwhile.
    """

    def refresh(connection: sqlite3.Connection, progress: Progress | None) -> str:
        done = refresh_text(connection, find_roots(), progress, may_rebuild=False)
        return " ".join(f"The texts of {name} cannot be read: {reason}" for name, reason in done.skipped.items())

    return refresh


def _read_shards(
    connection: sqlite3.Connection, jobs: list[Job], done: TextRefreshed, progress: Progress | None
) -> None:
    total, passed = sum(job.bytes for job in jobs), 0
    for job in jobs:
        for read in _read_shard(connection, job, done):
            passed += read
            if progress:
                progress(passed, total)
        if done.changed and done.can_rebuild:
            return  # all of it will be read again


def _read_shard(connection: sqlite3.Connection, job: Job, done: TextRefreshed) -> Iterator[int]:
    """Read the texts of a shard into the index, yielding the bytes of the records that were read."""
    try:
        with open_shard(job.root, job.shard.path) as reader:
            texts = ShardTexts(job.source, job.root, job.shard, reader)
            with writing(connection) as writer:
                yield from _write_texts(writer, texts, _rows(connection, job), done)
    except (SourceError, OSError):
        done.unreadable += sum(1 for _ in _rows(connection, job))


def _write_texts(writer: TextWriter, texts: ShardTexts, rows: Iterator[Row], done: TextRefreshed) -> Iterator[int]:
    changed = done.changed
    for found in _read_ahead(texts, rows):
        _take(writer, found, done)
        yield sum(text.row.byte_length for text in found)
        if done.changed > changed and done.can_rebuild:
            return
    if done.changed == changed:
        writer.close_shard(texts.shard)


def _rows(connection: sqlite3.Connection, job: Job) -> Iterator[Row]:
    # Sorted, so SQLite has all of them before the first one: what is written meanwhile does not disturb.
    cursor = connection.execute(
        f"""
        select t.id, t.uid, t.byte_offset, t.byte_length, t.item, t.line, d.digest
        from trajectories t left join {DIGESTS} d on d.trajectory_id = t.id
        where t.shard_id = ? {"and d.trajectory_id is null" if job.only_new else ""}
        order by t.byte_offset, t.item, t.id
        """,
        (job.shard.id,),
    )
    yield from (Row(*row) for row in cursor)


def _read_ahead(texts: ShardTexts, rows: Iterator[Row]) -> Iterator[list[Text]]:
    """Yield the texts batch by batch; while one is written, which needs no interpreter, the next one is decoded."""
    with ThreadPoolExecutor(1) as pool:
        waiting = None
        for batch in batches(rows):
            following = pool.submit(texts.read, batch)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        if waiting is not None:
            yield waiting.result()


def _take(writer: TextWriter, found: Sequence[Text], done: TextRefreshed) -> None:
    new = []
    for text in found:
        if text.text is None:
            done.unreadable += 1
        elif text.row.digest is None:
            new.append(text)
        elif text.row.digest != text.digest:
            done.changed += 1
    writer.add(new)
    done.trajectories += len(new)
    done.bytes += sum(text.size for text in new)


def _is_worn(connection: sqlite3.Connection) -> bool:
    """Say whether too many of the words are those of trajectories that the index has no longer."""
    with writing(connection):
        connection.execute(f"delete from {DIGESTS} where trajectory_id not in (select id from trajectories)")
    held = connection.execute(f"select count(*) from {TEXT_TABLE}_docsize").fetchone()[0]
    return bool((held - text_coverage(connection)[0]) * WORN_SHARE > held)
