"""Who scans the shards that are to be read: this process, processes beside it, or a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ..sources.base import Scanned, Source
from ..sources.places import Root
from .plan import Job

WORTH_IT = 256 << 20  # new bytes below which one process is as fast

Scan = Callable[[Job], Iterable[Scanned]]


@contextmanager
def scanning(
    source: Source, root: Root, jobs: list[Job], processes: int | None = 1, executor: str | None = None
) -> Iterator[Scan]:
    """Give what scans a shard; the shards are to be asked for in the order of `jobs`, each until its end.

    `processes` None means the cores that this process may use where there is much to read. `executor` names a
    cluster instead, as "dask://host:port". Raises SourceError where there is none.
    """
    count = processes_for(jobs) if processes is None else processes
    if executor is None and count < 2:
        yield lambda job: source.scan(root, job.shard, job.start)
        return
    from .parts import Parts, scan_with

    parts = Parts(source, root, jobs)
    if executor is not None:
        from .cluster import Cluster

        with Cluster(executor, source, root, iter(parts)) as cluster:
            yield scan_with(parts, cluster)
        return
    from .parallel import Workers

    with Workers(source, root, iter(parts), count) as workers:
        yield scan_with(parts, workers)


def processes_for(jobs: list[Job]) -> int:
    """Return how many processes are to scan these shards, where nobody says it."""
    return cores() if sum(job.new_bytes for job in jobs) >= WORTH_IT else 1


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
