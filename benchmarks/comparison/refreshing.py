"""Bringing an index up to date, timed inside the process."""

from __future__ import annotations

from .bench import Bench
from .environments import OURS, PEER
from .operation import Operation
from .processes import Command
from .workloads import BIG


def unchanged(side: str, bench: Bench) -> Command:
    """Return the refresh of a run in which nothing has changed."""
    program = "ours" if side == OURS else "peer"
    return Command(bench.program(side, program, "refresh", bench.indexed_database(side, "M"), bench.run("M")))


def grown(side: str, bench: Bench) -> Command:
    """Return the refresh of a file of 1.2 GB that has got ten more records."""
    program, database = "ours" if side == OURS else "peer", bench.database(side, "grown")
    call = bench.program(side, program, "refresh", database, bench.run(BIG))
    return Command(call, before=lambda: bench.growing.prepare(side))


OPERATIONS = [
    Operation(
        "index an unchanged run of 27 files again, in process",
        ours=lambda bench: unchanged(OURS, bench),
        other=lambda bench: unchanged(PEER, bench),
        seconds_bar=0.010,
        in_process=True,
    ),
    Operation(
        "ten more records in a file of 1.2 GB, in process",
        ours=lambda bench: grown(OURS, bench),
        other=lambda bench: grown(PEER, bench),
        seconds_bar=0.020,
        in_process=True,
        after=lambda bench: bench.growing.put_back(),
    ),
]
