"""Cutting what there is to read into parts that other processes scan, and putting their findings together again.

A part begins at any byte. Its lines are those that begin in it, so that cutting needs no reading; what a line's
number is, is known when all parts before it have been counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from traceback import format_exc
from typing import Any, NamedTuple, Protocol

from ..sources.base import PartedSource, Position, Scanned, Shard, Source, SourceError
from ..sources.files import open_shard
from ..sources.lines import line_start
from ..sources.places import Root
from .plan import Job

PART_BYTES = 16 << 20
BATCH = 1000  # findings that travel together


@dataclass(frozen=True)
class Part:
    """A stretch of a shard that one process scans."""

    number: int  # in the order in which the findings are wanted
    shard: Shard
    start: Position
    stop: int | None  # None: to the end
    size: int  # bytes
    is_first: bool  # `start` is where a line begins; else its lines begin behind a newline

    @property
    def is_whole(self) -> bool:
        """Say whether no other part belongs to it."""
        return self.is_first and self.stop is None


class Begin(NamedTuple):
    """Where the first line of a part begins. A part without one, in which no line begins, has no findings."""

    offset: int


class Failed(NamedTuple):
    """Why a scan ended, in the place of what would have followed."""

    error: Exception
    trace: str = ""  # of an error that nobody expects


class ScanError(Exception):
    """What happened in another process."""


class Engine(Protocol):
    """What scans parts. They are asked for in the order of their numbers."""

    def batches(self, part: Part) -> Iterator[list[Any]]:
        """Yield the findings of a part, as `scan_part` gives them, when they are there."""
        ...

    def drop(self, part: Part) -> None:
        """Forget a part that is not wanted any more, or is done."""
        ...


def scan_part(source: Source, root: Root, part: Part) -> Iterator[list[Any]]:
    """Yield what a part holds, in batches. This runs in other processes; no error leaves it."""
    batch: list[Any] = []
    try:
        for one in _findings(source, root, part):
            batch.append(one)
            if len(batch) >= BATCH:
                yield batch
                batch = []
    except (SourceError, OSError) as error:
        batch.append(Failed(error))
    except Exception as error:  # a bug: it is raised again where the findings are put together
        batch.append(Failed(RuntimeError(f"{type(error).__name__}: {error}"), format_exc()))
    yield batch


def _findings(source: Source, root: Root, part: Part) -> Iterator[Any]:
    if not isinstance(source, PartedSource):
        yield from source.scan(root, part.shard, part.start)
        return
    start = part.start
    if not part.is_first:
        with open_shard(root, part.shard.path) as reader:
            offset = line_start(reader, start.offset, part.stop)
        if offset is None:
            return
        start = Position(offset)
    if not part.is_whole:
        yield Begin(start.offset)
    yield from source.scan_part(root, part.shard, start, part.stop)


class Parts:
    """The parts of all shards that are to be read, planned when they are needed."""

    def __init__(self, source: Source, root: Root, jobs: list[Job]) -> None:
        self.source, self.root, self.jobs = source, root, jobs
        self.planned: dict[str, list[Part]] = {}
        self.count = 0

    def __iter__(self) -> Iterator[Part]:
        for job in self.jobs:
            yield from self.of(job)

    def of(self, job: Job) -> list[Part]:
        """Return the parts of one shard. Shards are planned in their order."""
        path = job.shard.path
        if path not in self.planned:
            size = self._size(job)
            cuts = [job.start.offset, *self._cuts(job, size)]
            self.planned[path] = [
                Part(self.count + index, job.shard, Position(cut) if index else job.start, stop,
                     max((stop or size) - cut, 0), index == 0)
                for index, (cut, stop) in enumerate(zip(cuts, [*cuts[1:], None], strict=True))
            ]  # fmt: skip
            self.count += len(cuts)
        return self.planned[path]

    def _cuts(self, job: Job, size: int) -> list[int]:
        start = job.start.offset
        count = -(-(size - start) // PART_BYTES) if self._has_lines(job.shard) else 1
        return [start + (size - start) * index // count for index in range(1, count)]

    def _has_lines(self, shard: Shard) -> bool:
        return isinstance(self.source, PartedSource) and self.source.has_lines(shard)

    def _size(self, job: Job) -> int:
        """Return the size of a shard, uncompressed where it can be read from any place, else as it is."""
        if job.shard.path == job.shard.file or not self._has_lines(job.shard):
            return job.size
        try:
            with open_shard(self.root, job.shard.path) as reader:
                return reader.size() if getattr(reader, "is_random_access", True) else 0
        except (SourceError, OSError):
            return 0  # whoever reads it will say why it cannot be read


def scan_with(parts: Parts, engine: Engine) -> Callable[[Job], Iterable[Scanned]]:
    """Return what yields for a shard exactly what its source's own `scan` does, scanned by an engine."""
    return partial(_scan, parts, engine)


def _scan(parts: Parts, engine: Engine, job: Job) -> Iterable[Scanned]:
    found = _put_together(engine, job.start, parts.of(job))
    return parts.source.joined(job.shard, job.start, found) if isinstance(parts.source, PartedSource) else found


def _put_together(engine: Engine, start: Position, parts: list[Part]) -> Iterator[Any]:
    try:
        yield from _each(engine, parts[0]) if len(parts) == 1 else _as_one(engine, start, parts)
    finally:
        for part in parts:
            engine.drop(part)


def _as_one(engine: Engine, start: Position, parts: list[Part]) -> Iterator[Any]:
    """Yield the findings of the parts of a shard as if it had been one."""
    reached, lines = start, 0
    ending: list[Any] = []  # what ends the shard, if no further part begins
    for part in parts:
        for one in _each(engine, part):
            if isinstance(one, Begin):
                if one.offset != reached.offset:
                    # The file was changed meanwhile: the next refresh goes on from here, or begins anew.
                    yield from ending
                    return
                ending, lines = [], 0 if part.is_first else reached.line
                continue
            if isinstance(one, Position):
                reached = one = Position(one.offset, lines + one.line, one.waiting)
            elif lines and getattr(one, "line", None) is not None:
                one.line += lines
            if ending or one is reached:
                ending.append(one)
            else:
                yield one
    yield from ending


def _each(engine: Engine, part: Part) -> Iterator[Any]:
    for batch in engine.batches(part):
        for one in batch:
            if isinstance(one, Failed):
                raise one.error from (ScanError(one.trace) if one.trace else None)
            yield one
