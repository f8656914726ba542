"""A small run that everything public can be asked about: two steps of three trajectories that all say gasket."""

from __future__ import annotations

from pathlib import Path

from tests.commands import indexed
from tests.layouts import append, message, trace


def gaskets(folder: Path) -> Path:
    """Write the run, and return the index of it beside it, with its full text."""
    for step in (1, 2):
        said = [[message("user", f"q{n}"), message("assistant", "a gasket")] for n in range(3)]
        traces = [trace(one, id=f"{step}{n}", reward=1.0) for n, one in enumerate(said)]
        append(folder / f"run/rollouts/step_{step}/train/all/traces.jsonl", *traces)
    assert indexed(folder / "x.sqlite", folder / "run", "--fts").returncode == 0
    return folder / "x.sqlite"
