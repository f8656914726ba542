"""Answers about a whole run, from an index that is there."""

from __future__ import annotations

from .bench import Bench
from .environments import OURS, PEER
from .operation import Operation
from .processes import Command


def analysis_ours(bench: Bench) -> Command:
    """Return our analysis of M in windows of 8 steps."""
    folder, database = bench.folder / "work" / "analysis-ours", bench.indexed_database(OURS, "M")
    options = ["--split", "train", "--window", "8", "--k", "1,4", "--output", folder]
    call = [bench.environment(OURS) / "bin" / "rltracer", "analyze", database, *options]
    return Command(call, bench.program(OURS, "answers", "analysis_ours", folder))


def analysis_peer(bench: Bench) -> Command:
    """Return the peer's analysis of the same."""
    folder = bench.folder / "work" / "analysis-peer"
    options = [f"--run={bench.run('M')}", "--tokenizer=unused", "--bin_size=8", f"--output={folder}"]
    call = [bench.environment(PEER) / "bin" / "rltracer", "analyze", *options]
    return Command(call, bench.program(OURS, "answers", "analysis_peer", folder))


OPERATIONS = [
    Operation("analysis of M, all steps", analysis_ours, analysis_peer, bar=0.05),
]
