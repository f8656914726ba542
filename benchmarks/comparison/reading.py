"""Questions to an index that is there: one trajectory, and the pass rates of a step."""

from __future__ import annotations

from collections.abc import Callable

from .bench import Bench
from .environments import OURS, PEER
from .operation import Operation
from .processes import Command
from .workloads import BIG

LAST_STEP = "24"  # of M


def load_ours(workload: str, times: int) -> Callable[[Bench], Command]:
    """Return our loading of a run's last record."""
    return lambda bench: Command(
        bench.program(
            OURS,
            "ours",
            "load",
            bench.indexed_database(OURS, workload),
            bench.last_trajectory(OURS, workload),
            str(times),
        )
    )


def load_peer(workload: str, times: int) -> Callable[[Bench], Command]:
    """Return the peer's loading of the same record."""
    return lambda bench: Command(
        bench.program(
            PEER,
            "peer",
            "load",
            bench.indexed_database(PEER, workload),
            bench.run(workload),
            bench.last_trajectory(PEER, workload),
            str(times),
        )
    )


def pass_rates_ours(workload: str, step: str) -> Callable[[Bench], Command]:
    """Return our question for the pass rates of a step."""
    return lambda bench: Command(
        bench.program(OURS, "ours", "pass_rates", bench.indexed_database(OURS, workload), step, "20")
    )


def pass_rates_peer(workload: str, step: str) -> Callable[[Bench], Command]:
    """Return the peer's calculation of the same."""
    return lambda bench: Command(
        bench.program(
            PEER, "peer", "pass_rates", bench.indexed_database(PEER, workload), bench.run(workload), step, "3"
        )
    )


OPERATIONS = [
    Operation("load the last record of a 1.2 GB file, whole process", load_ours(BIG, 1), load_peer(BIG, 1), bar=0.04),
    Operation("the same in process", load_ours(BIG, 20), load_peer(BIG, 1), bar=0.001, in_process=True),
    Operation(
        "load the last record of a 50 MB file, in process", load_ours("M", 20), load_peer("M", 1), in_process=True
    ),
    Operation(
        "pass rates of one step of M, in process",
        pass_rates_ours("M", LAST_STEP),
        pass_rates_peer("M", LAST_STEP),
        bar=0.003,
        in_process=True,
    ),
]
