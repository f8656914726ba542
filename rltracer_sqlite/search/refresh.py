"""Building the full text of an index and keeping it up: a second pass over the records, and only over new ones."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from ..index.database import begin_writing, transaction
from ..roots import Roots
from .ahead import Batch, batches, read_ahead
from .jobs import Job, find_work
from .shard_texts import Row, Text
from .tables import DIGESTS, TEXT_TABLE, Coverage, has_old_text, has_text, make_text_tables, text_coverage, text_of
from .write import TextWriter, merge_a_little, put_off_merging, writing

Progress = Callable[[int, int], None]  # bytes of records read so far, bytes to read

PAGE_ROWS = 10_000  # that are held at once
WORN_SHARE = 4  # words of removed trajectories stay until they are more than one in so many
NOTHING = Coverage(0, 0)


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
    coverage: Coverage = NOTHING  # these two, and what is with the trajectories that cannot be searched


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
    that it takes: see `TextRefreshed.changed`. Full text that an earlier version made, which none searches, is built
    anew in any case.
    """
    started = time.perf_counter()
    begin_writing(connection)
    rebuild = rebuild or has_old_text(connection)
    if rebuild or not has_text(connection):
        make_text_tables(connection)
    work = find_work(connection, roots)
    done = TextRefreshed(rebuilt=rebuild, skipped=work.unread, can_rebuild=may_rebuild and work.is_all and not rebuild)
    put_off_merging(connection)
    _read_shards(connection, work.jobs, done, progress)
    merge_a_little(connection, sum(job.bytes for job in work.jobs))
    if done.can_rebuild and (done.changed or (work.jobs and _is_worn(connection))):
        return refresh_text(connection, roots, progress, rebuild=True)
    done.coverage = text_coverage(connection)
    done.searchable, done.total = done.coverage[:2]
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
    wanted = (batch for job in jobs for batch in batches(job, _rows(connection, job)))
    with writing(connection) as writer, closing(read_ahead(wanted)) as found:
        again: set[int] = set()  # shards that the next pass has to read once more
        for batch, texts in found:
            shard = batch.job.shard
            if not _take(writer, batch, texts, done):
                again.add(shard.id)
            if batch.is_last and shard.id not in again:
                writer.close_shard(shard)
            passed += batch.bytes
            if progress and batch.rows:
                progress(passed, total)
            if done.changed and done.can_rebuild:
                return  # all of it will be read again


def _rows(connection: sqlite3.Connection, job: Job) -> Iterator[Row]:
    """Yield what is to be read of a shard in pages, each in the order of the file.

    No question stays open between them, as that would keep SQLite from beginning its write-ahead log anew.
    """
    last: int | None = -(1 << 63)
    while last is not None:
        page = connection.execute(
            f"""
            select t.id, t.uid, t.byte_offset, t.byte_length, t.item, t.line, d.digest
            from trajectories t left join {DIGESTS} d on d.trajectory_id = t.id
            where t.shard_id = ? and t.id > ? {"and d.trajectory_id is null" if job.only_new else ""}
            order by t.id limit {PAGE_ROWS}
            """,
            (job.shard.id, last),
        ).fetchall()
        last = page[-1][0] if len(page) == PAGE_ROWS else None
        yield from sorted(map(Row._make, page), key=_place)


def _place(row: Row) -> tuple[int, int]:
    return row.byte_offset, -1 if row.item is None else row.item


def _take(writer: TextWriter, batch: Batch, texts: Sequence[Text] | None, done: TextRefreshed) -> bool:
    """Add the texts of a batch; say whether that is all there is to do about it."""
    if texts is None:
        done.unreadable += len(batch.rows)
        return False
    new, changed = [], done.changed
    for text in texts:
        if text.text is None:
            done.unreadable += 1
        elif text.row.digest is None:
            new.append(text)
        elif text.row.digest != text.digest:
            done.changed += 1
    writer.add(new)
    done.trajectories += len(new)
    done.bytes += sum(text.size for text in new)
    return done.changed == changed


def _is_worn(connection: sqlite3.Connection) -> bool:
    """Say whether too many of the words are those of trajectories that the index has no longer."""
    with transaction(connection):
        connection.execute(f"delete from {DIGESTS} where trajectory_id not in (select id from trajectories)")
    held = connection.execute(f"select count(*) from {TEXT_TABLE}_docsize").fetchone()[0]
    return bool((held - text_of(connection)) * WORN_SHARE > held)
