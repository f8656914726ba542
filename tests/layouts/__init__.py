"""Small runs in every JSONL layout that prime-rl and verifiers have written, and what a reader must find in each.

`LAYOUTS` maps a name to a writer: `LAYOUTS["j2"](folder)` fills the folder and returns an `Expected`. Odd records are
built with `trace`, `episode`, `node`, `message` and `v0_row`, and put into a file with `append`.
"""

# ruff: noqa: F401 - these names are here to be imported by tests.
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from .corpora import corpora, expected_sets
from .episodes import write_j2, write_v1c
from .expected import Expected
from .files import append, append_torn, line, pandas_line, spaced_line
from .records import ABSENT, episode, hex_id, message, node, nodes_of, tool_call, trace, v0_row
from .rows import write_j0, write_pe, write_v0
from .seekable import seal
from .stream import write_j3
from .traces import write_j1a, write_j1b, write_j1c, write_v1a, write_v1b

LAYOUTS: dict[str, Callable[[Path], Expected]] = {
    "j0-04-10": partial(write_j0, generation="04-10"),
    "j0-04-15": partial(write_j0, generation="04-15"),
    "j0-06-01": partial(write_j0, generation="06-01"),
    "j1a": write_j1a,
    "j1b": write_j1b,
    "j1c": write_j1c,
    "j2": write_j2,
    "j3": write_j3,
    "v0-0.1.3": partial(write_v0, version="0.1.3"),
    "v0-0.1.8": partial(write_v0, version="0.1.8"),
    "v0-0.1.11": partial(write_v0, version="0.1.11"),
    "v1a": write_v1a,
    "v1b": write_v1b,
    "v1c-07-21": partial(write_v1c, generation="07-21"),
    "v1c-0.4.0": partial(write_v1c, generation="0.4.0"),
    "pe-step": partial(write_pe, variant="step"),
    "pe-stream": partial(write_pe, variant="stream"),
}
