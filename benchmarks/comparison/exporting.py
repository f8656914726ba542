"""Exporting SFT rows: from an index that is there, and from nothing. Both sides draw the same trajectories."""

from __future__ import annotations

from .bench import Bench
from .environments import OURS, PEER
from .operation import Operation
from .processes import Command

# 1,154 rows: two of each prompt and window that were solved, some of the time at least, in few turns.
FILTERS = ["--min-pass-rate", "0.05", "--field", "metrics.num_turns<=8", "--window", "6", "--per-prompt", "2"]
PEAK_MIB = 80


def export_ours(bench: Bench) -> Command:
    """Return our export of M from its index."""
    output, database = bench.folder / "work" / "export-ours.jsonl", bench.indexed_database(OURS, "M")
    call = [bench.environment(OURS) / "bin" / "rltracer", "export", database, "-o", output, "--quiet", *FILTERS]
    return Command([*call, "--keep-errors"], bench.program(OURS, "exported", output))


def export_ours_from_nothing(bench: Bench) -> Command:
    """Return our indexing and export of M, in one process that keeps its index in an empty cache."""
    output, run = bench.folder / "work" / "export-ours.jsonl", bench.run("M")
    call = [bench.environment(OURS) / "bin" / "rltracer", "export", run, "-o", output, "--quiet", *FILTERS]
    return Command([*call, "--keep-errors"], bench.program(OURS, "exported", output), before=lambda: forget(bench))


def export_peer(bench: Bench) -> Command:
    """Return the peer's export of the same, which always reads every file."""
    output = bench.folder / "work" / "export-peer.jsonl"
    call = bench.program(PEER, "peer_export", bench.run("M"), output)
    return Command(call, bench.program(OURS, "exported", output))


def forget(bench: Bench) -> None:
    """Remove what an earlier run has indexed into the cache folder of the measured home."""
    for path in bench.home.rglob("M-*.sqlite*"):
        path.unlink()


OPERATIONS = [
    Operation(
        "export 1,154 SFT rows of M, indexed", export_ours, export_peer, bar=0.08, peak_bar=lambda bench: PEAK_MIB
    ),
    Operation("index M and export 1,154 SFT rows of it", export_ours_from_nothing, export_peer, bar=0.2),
]
