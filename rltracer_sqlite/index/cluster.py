"""Scanning on a Dask cluster whose workers see the files of a run at the same place."""

from __future__ import annotations

import asyncio
import pickle
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..sources.base import Source, SourceError
from ..sources.places import Root
from .database import IndexFileError
from .parts import Failed, Part, scan_part

if TYPE_CHECKING:
    from distributed import Client, Future

SCHEME = "dask://"
CONNECT_SECONDS = 10
PATIENT_SECONDS = 3.0  # until a cluster without workers is told
PER_THREAD = 2  # parts that are handed out ahead for each thread of the cluster
LEAST_AHEAD = 4
COUNTED_SECONDS = 5.0  # how long a count of the threads is taken for true: a cluster may grow


class ClusterError(IndexFileError):
    """A cluster that cannot be used, or is lost; what was written before is kept."""


class Cluster:
    """A Dask cluster that scans parts, as `parts.Engine` wants it: `with Cluster("dask://host:port", ...) as engine:`.

    The scheduler gives what a lost worker had to another one; a part that has cost several workers their lives fails.
    """

    def __init__(self, address: str, source: Source, root: Root, parts: Iterator[Part]) -> None:
        self.address, self.root, self.parts = address, root.absolute(), parts
        self.source = pickle.dumps(source)
        self.futures: dict[int, Future] = {}
        self.dropped = -1
        self.is_told = False  # that there are no workers
        self.ahead, self.counted = LEAST_AHEAD, -COUNTED_SECONDS

    def __enter__(self) -> Cluster:
        self.client = connect(self.address)
        return self

    def __exit__(self, *error: object) -> None:
        self.client.cancel(list(self.futures.values()))
        self.client.close()

    def batches(self, part: Part) -> Iterator[list[Any]]:
        """Yield the findings of a part. Waits for them, while the cluster scans those that follow."""
        try:
            while part.number not in self.futures:
                self._submit(next(self.parts))
            self._look_ahead()
            yield pickle.loads(self._result(part))
        except Exception as error:
            if self.client.status == "running" and not isinstance(error, OSError):
                raise
            raise ClusterError(f"The scheduler at {self.address} is lost. Index again to go on.") from None

    def drop(self, part: Part) -> None:
        """Forget a part; with it all before it, since parts are asked for in their order."""
        self.dropped = max(self.dropped, part.number)
        if future := self.futures.pop(part.number, None):
            future.cancel()

    def _look_ahead(self) -> None:
        """Hand out as much as keeps the cluster busy, and no more: results wait in the workers' memory."""
        if time.monotonic() - self.counted > COUNTED_SECONDS:
            self.ahead = max(LEAST_AHEAD, PER_THREAD * sum(self.client.nthreads().values()))
            self.counted = time.monotonic()
        while len(self.futures) <= self.ahead and (part := next(self.parts, None)) is not None:
            self._submit(part)

    def _submit(self, part: Part) -> None:
        if part.number > self.dropped:
            self.futures[part.number] = self.client.submit(scan_remotely, self.source, self.root, part, pure=False)

    def _result(self, part: Part) -> bytes:
        from distributed import KilledWorker

        try:
            # Taken out, so that the cluster forgets what has been read.
            return bytes(self._awaited(self.futures.pop(part.number)))
        except KilledWorker as error:
            what = f"{error.allowed_failures + 1} workers in turn ended while they read it"
            return pickle.dumps([Failed(SourceError(f"{what}; index again to read it"))])
        except ImportError as error:
            raise ClusterError(f"The workers of {self.address} lack what indexing needs: {error}.") from None

    def _awaited(self, future: Future) -> bytes:
        """Return the result of a task; while no worker is there to work at any, say so, since this may be for ever."""
        while True:
            try:
                return future.result(timeout=PATIENT_SECONDS)  # type: ignore[no-any-return]
            except (TimeoutError, asyncio.TimeoutError):  # the same from Python 3.11 on
                if future.status in ("error", "cancelled"):  # it has ended since, or with such an error of its own
                    return future.result()  # type: ignore[no-any-return]
            lacks_workers = not self.client.nthreads()
            if lacks_workers and not self.is_told:
                print(f"Waiting for workers of {self.address}.", file=sys.stderr, flush=True)
            self.is_told = lacks_workers


def scan_remotely(source: bytes, root: Root, part: Part) -> bytes:
    """Return all findings of a part, pickled: what a worker of the cluster does."""
    found = [one for batch in scan_part(_source(source), root, part) for one in batch]
    return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=4)
def _source(pickled: bytes) -> Source:
    # Kept from part to part, since it may have loaded a tokenizer.
    return pickle.loads(pickled)  # type: ignore[no-any-return]


def connect(address: str) -> Client:
    """Return a client of the scheduler at "dask://host:port". Raises ClusterError."""
    place = address.removeprefix(SCHEME)
    if place == address or not place:
        raise ClusterError(f"{address!r} is no executor; write dask://host:port.")
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError(
            "An executor dask://… needs the package distributed: pip install 'datasette-rltracer[dask]'"
        ) from None
    try:
        return Client(place if "://" in place else f"tcp://{place}", timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"No Dask scheduler answers at {address} ({error or type(error).__name__}).") from None
