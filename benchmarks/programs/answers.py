"""What an index holds, in a form in which two indexes can be compared. Needs only the standard library."""

from __future__ import annotations

import csv
import hashlib
import json
import sqlite3
import sys
from pathlib import Path


def partition_ours(database: str) -> object:
    """Return a digest of which line of which file is in which prompt of which step."""
    rows = _rows(
        database,
        """
        select t.step, g.prompt_id, s.path, t.line
        from trajectories t join prompt_groups g on g.id = t.prompt_group_id join shards s on s.id = t.shard_id
        """,
    )
    return _partition(rows)


def partition_peer(database: str) -> object:
    """Return the same of an index of rltracer 0.1.0, which counts lines from 0."""
    rows = _rows(database, "select step, prompt_key, shard, row_i + 1 from trajectories")
    return _partition(rows)


def partition_peer_bins(database: str) -> object:
    """Return the same of its index of bins, where it counts micro batches."""
    rows = _rows(database, "select step, prompt_key, shard, group_i + 1 from trajectories")
    return _partition(rows)


def groups_ours(database: str) -> object:
    """Return [step, split, trajectories, scored, successes] of each prompt, sorted."""
    rows = _rows(
        database,
        """
        select step, split, sum(trajectories), sum(scored), sum(successes)
        from prompt_groups group by step, split, prompt_id
        """,
    )
    return sorted(map(list, rows))


def analysis_ours(folder: str) -> object:
    """Return [beginning of the prompt, window, scored, successes, pass@1, pass@4] of each row, sorted."""
    return sorted(
        [row["preview"][:100], int(row["window"]), int(row["scored"]), int(row["successes"]), *_rates(row)]
        for row in _table(folder, "prompts.csv")
        if int(row["scored"])
    )


def analysis_peer(folder: str) -> object:
    """Return the same of what rltracer 0.1.0 writes for windows of 8 steps."""
    counts = ("rollout_count", "success_count")
    return sorted(
        [row["prompt_preview"][:100], int(row["step_start"]) // 8, *(int(row[name]) for name in counts), *_rates(row)]
        for row in _table(folder, "prompt_pass_metrics.csv")
    )


def _table(folder: str, name: str) -> list[dict[str, str]]:
    with (Path(folder) / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _rates(row: dict[str, str]) -> list[float | None]:
    # Rounded, since 1 - a/b and (b - a)/b differ in the last place.
    return [round(float(row[name]), 12) if row[name] else None for name in ("pass_at_1", "pass_at_4")]


def _rows(database: str, question: str) -> list[tuple[object, ...]]:
    return sqlite3.connect(f"file:{database}?mode=ro", uri=True).execute(question).fetchall()


def _partition(rows: list[tuple[object, ...]]) -> object:
    groups: dict[tuple[object, object], list[list[object]]] = {}
    for step, prompt, path, line in rows:
        place = str(path).rpartition("rollouts/")[2]
        groups.setdefault((step, prompt), []).append([place, line])
    parts = [[step, sorted(places, key=str)] for (step, _), places in groups.items()]
    digest = hashlib.sha256(json.dumps(sorted(parts, key=str)).encode()).hexdigest()
    return {"trajectories": len(rows), "prompts of steps": len(groups), "digest": digest}


if __name__ == "__main__":
    questions = {
        "ours": partition_ours,
        "peer": partition_peer,
        "peer_bins": partition_peer_bins,
        "groups": groups_ours,
        "analysis_ours": analysis_ours,
        "analysis_peer": analysis_peer,
    }
    print(json.dumps({"answer": questions[sys.argv[1]](sys.argv[2])}))
