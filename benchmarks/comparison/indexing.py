"""Indexing a run from nothing, as whole processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .bench import Bench
from .environments import OURS, PEER, PEER_WITH_TOKENS
from .operation import Operation
from .processes import Command, measure
from .workloads import BIG, longest_record, shards

MEBIBYTE = 2**20
PEAK_MEBIBYTES = 80  # for the program; three times the longest record come on top


def index_operation(name: str, workload: str, bar: float | None, *options: str) -> Operation:
    """Return the operation of indexing a workload against the peer, with options for our command."""
    return Operation(
        name,
        ours=lambda bench: bench.index_command(OURS, workload, *options),
        other=lambda bench: bench.index_command(PEER, workload),
        bar=bar,
        peak_bar=peak_bar(workload),
        reads=lambda bench: shards(bench.run(workload)),
    )


def peak_bar(workload: str) -> Callable[[Bench], float]:
    """Return the function that says how much memory indexing a workload may take, in MiB."""
    return lambda bench: PEAK_MEBIBYTES + 3 * longest_record(bench.run(workload)) / MEBIBYTE


def index_against_duckdb(bench: Bench, *options: str) -> Command:
    """Return our command for M with the answer that DuckDB gives."""
    command = bench.index_command(OURS, "M", *options)
    return Command(
        command.arguments, bench.program(OURS, "answers", "groups", bench.database(OURS, "M")), command.before
    )


def index_bins(bench: Bench) -> Command:
    """Return our command for the run of token ids, whose tokenizer has been used before: its table is in the cache."""
    command = bench.index_command(OURS, "bin", "--tokenizer", str(bench.tokenizer))
    measure(command, bench.home)
    return command


def peer_index_bins(bench: Bench) -> Command:
    """Return the peer's way, which loads the tokenizer with transformers."""
    database, folder = bench.database(PEER, "bin"), (bench.tokenizer or Path()).absolute().parent
    call = bench.program(PEER_WITH_TOKENS, "peer", "index_tokens", database, bench.run("bin"), folder)
    answer = bench.program(OURS, "answers", "peer_bins", database)
    return Command(call, answer, before=lambda: bench.fresh(PEER, "bin"))


OPERATIONS = [
    index_operation("index S (54 MB, and 34 MB of copies under effective/)", "S", 0.5),
    index_operation("index M (1.2 GB, 27 files), one process", "M", 0.25, "--jobs", "1"),
    index_operation("index M, two jobs", "M", 0.18, "--jobs", "2"),
    index_operation("index T (357 MB, text only), as it comes: two jobs", "T", 0.6),
    index_operation("index T, one process", "T", None, "--jobs", "1"),
    index_operation("index one file of 1.2 GB", BIG, None, "--jobs", "1"),
    Operation(
        "index two bins of 25 MB, with their tokenizer",
        ours=index_bins,
        other=peer_index_bins,
        bar=0.12,
        peak_bar=lambda bench: PEAK_MEBIBYTES,
        reads=lambda bench: shards(bench.run("bin")),
        needs_tokenizer=True,
    ),
]
