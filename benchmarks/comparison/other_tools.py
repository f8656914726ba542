"""Against general tools with a hand-written query: they must read the files again for each question."""

from __future__ import annotations

from .bench import Bench
from .environments import OURS
from .indexing import index_against_duckdb
from .operation import Operation
from .processes import Command
from .reading import LAST_STEP
from .workloads import shards


def duckdb(bench: Bench) -> Command:
    """Return DuckDB's reading of M, with its two threads or more."""
    return Command(bench.program("duckdb", "duckdb_read", *shards(bench.run("M"))))


def one_step_ours(bench: Bench) -> Command:
    """Return our pass rates of a step as a whole process, from an index that is there."""
    return Command(bench.program(OURS, "ours", "pass_rates", bench.indexed_database(OURS, "M"), LAST_STEP, "1"))


def one_step_jq(bench: Bench) -> Command:
    """Return jq's pass rates of the same step."""
    path = next(path for path in shards(bench.run("M")) if path.parts[-4:-2] == (f"step_{LAST_STEP}", "train"))
    return Command(bench.program("jq", "jq_read", path))


OPERATIONS = [
    Operation(
        "index M as it comes (two jobs), against DuckDB read_json with columns given, on both cores",
        index_against_duckdb,
        duckdb,
        other_name="DuckDB",
        bar=0.9,
    ),
    Operation(
        "index M in one process, against the same",
        lambda bench: index_against_duckdb(bench, "--jobs", "1"),
        duckdb,
        other_name="DuckDB",
    ),
    Operation("pass rates of one step of M, against jq", one_step_ours, one_step_jq, other_name="jq"),
]
