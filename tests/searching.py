"""Full text in tests: small runs that say something, the text of their index, and what a question finds in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import TextRefreshed, full_text_query, refresh_text
from tests.indexing import index, rows
from tests.layouts.records import Record, message, nodes_of, tool_call, trace

TRACES = Path("rollouts/step_1/train/all/traces.jsonl")
SAID = "The gasket count disagrees with the ledger of last Thursday"


def write_step(root: Path, traces: Sequence[Record], step: int = 1, mode: str = "w") -> Path:
    """Write one step of a run, or add to it, and return the file."""
    file = root / str(TRACES).replace("step_1", f"step_{step}")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open(mode, encoding="utf-8") as out:
        out.writelines(json.dumps(one) + "\n" for one in traces)
    return file


def said(text: str, **extra: Any) -> Record:
    """Return a trace in which the model says one thing."""
    return trace([message("user", "Well?"), message("assistant", text)], **extra)


def text(database: Path, *roots: Path, **options: Any) -> TextRefreshed:
    """Bring the full text of an index up to date."""
    connection = open_for_writing(database)
    try:
        return refresh_text(connection, Roots(roots), **options)
    finally:
        finish_writing(connection)


def found(database: Path, question: str) -> list[str]:
    """Return the uids of the trajectories that a person's question finds."""
    sql = """
        select uid from trajectories
        where id in (select rowid from trajectories_text where trajectories_text match ?) order by uid
    """
    return [uid for (uid,) in rows(database, sql, (full_text_query(question),))]


def searchable(folder: Path) -> Path:
    """Write a run with three trajectories, index it with its full text in x.sqlite beside it, and return its folder."""
    whole = trace(
        [
            message("system", "Be brief."),
            message("user", "Why does the build fail?"),
            message("assistant", "Let me look.", reasoning_content="Perhaps a missing header.",
                    tool_calls=[tool_call("c1", "terminal", {"command": "make\ninstall", "note": "caffè"})]),
            message("tool", "linker error: undefined symbol", tool_call_id="c1"),
        ],
        id="whole",
    )  # fmt: skip
    forked = [message("user", "Pick one."), message("assistant", "leftmost"), message("assistant", "rightmost")]
    write_step(folder / "run", [whole, trace(nodes=nodes_of(forked, [None, 0, 0]), id="forked"), said(SAID, id="said")])
    index(folder / "x.sqlite", folder / "run")
    text(folder / "x.sqlite", folder / "run")
    return folder / "run"
