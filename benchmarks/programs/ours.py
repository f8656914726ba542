"""What a user of this library writes, one function for each operation. Runs in this project's environment."""

from __future__ import annotations

import json
import sys
import time


def refresh(database: str, run: str) -> dict[str, object]:
    """Bring the index up to date."""
    from importlib import import_module
    from pathlib import Path

    from rltracer_sqlite.index.database import finish_writing, open_for_writing
    from rltracer_sqlite.index.refresh import refresh_run
    from rltracer_sqlite.sources import source_for

    import_module("rltracer_sqlite.sources.prime_rl.scan")  # otherwise the first file that is read imports it
    source = source_for(Path(run))
    connection = open_for_writing(Path(database))
    (identity,) = connection.execute("select id from runs").fetchone()
    began = time.perf_counter()
    refresh_run(connection, source, Path(run), identity)
    seconds = time.perf_counter() - began
    (count,) = connection.execute("select count(*) from trajectories").fetchone()
    finish_writing(connection)
    return {"seconds": [seconds], "answer": count}


def load(database: str, identity: str, times: str) -> dict[str, object]:
    """Load one trajectory."""
    from rltracer_sqlite import open_run

    adapter = open_run(database)
    seconds = []
    for _ in range(int(times)):
        began = time.perf_counter()
        trajectory = adapter.load_trajectory(int(identity))
        seconds.append(time.perf_counter() - began)
    texts = [[message["role"], message["content"] or ""] for message in trajectory.messages]
    from hashlib import sha256

    return {"seconds": seconds, "answer": sha256(json.dumps(texts).encode()).hexdigest()}


def pass_rates(database: str, step: str, times: str) -> dict[str, object]:
    """Ask for the pass rate of each prompt of a step."""
    import sqlite3

    connection = sqlite3.connect(database)
    seconds = []
    for _ in range(int(times)):
        began = time.perf_counter()
        rows = connection.execute(
            """
            select p.preview, sum(g.scored), sum(g.successes), sum(g.successes) * 1.0 / sum(g.scored)
            from prompt_groups g join prompts p on p.id = g.prompt_id
            where g.run_id = 1 and g.step = ? and g.split = 'train'
            group by g.prompt_id having sum(g.scored)
            """,
            (int(step),),
        ).fetchall()
        seconds.append(time.perf_counter() - began)
    return {
        "seconds": seconds,
        "answer": sorted([preview[:100], scored, passed] for preview, scored, passed, _ in rows),
    }


if __name__ == "__main__":
    operations = {"refresh": refresh, "load": load, "pass_rates": pass_rates}
    print(json.dumps(operations[sys.argv[1]](*sys.argv[2:])))
