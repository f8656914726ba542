"""Measure an index of millions of trajectories: its size, and each page, facet and view under Datasette's own limits.

    python -m benchmarks.index_scale [INDEX] [--steps 1000] [--prompts 125] [--rollouts 8]

makes the index first where it does not exist (a million: about 25 s, 400 MB). A page that fails or says that a query
or a facet ran out of time is an error. Sizes are told with and without the previews, since these are as long as the
prompts are.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import datasette as installed
from datasette.app import Datasette

from tests.index_factory import make_large_index

REPEATS = 3
BYTES_EACH = 400  # beyond the previews
TABLES = ("runs", "steps", "shards", "prompts", "prompt_groups", "trajectories", "step_values", "fields", "problems")
PAGES = (
    *(f"/{{name}}/{table}" for table in TABLES),
    "/{name}/trajectories?step=77&success=1",
    "/{name}/trajectories?_sort_desc=reward&step__gte=100",
    "/{name}/trajectories?group_pass_rate__gte=0.25&group_pass_rate__lt=0.5",
    "/{name}/trajectories?_next=500000",
    "/{name}/prompt_groups?step=77",
    "/{name}/prompt_groups?_sort=pass_rate&split=train",
    "/{name}/prompt_pass_rates",
    "/{name}/step_summary",
    "/{name}/unread_steps",
    "/{name}/prompt_windows?window_size=40",
    "/{name}/window_summary?window_size=40",
    "/{name}/prompt_changes?window_size=40",
    "/{name}/pass_at_k",
    "/-/rltracer/{name}/",
    "/-/rltracer/{name}/run/1",
    "/-/rltracer/{name}/run/1/charts",
    "/{name}",
)
TIMED_OUT = ("timed out", "time limit", "SQL query took too long", "interrupted")


def report_size(path: Path) -> bool:
    """Print what a trajectory takes, by table and index; say whether it is within the limit."""
    with closing(sqlite3.connect(path)) as connection:
        count, previews = connection.execute(
            "select count(*), sum(length(cast(preview as blob))) from trajectories"
        ).fetchone()
        previews += connection.execute("select sum(length(cast(preview as blob))) from prompts").fetchone()[0]
        parts = connection.execute(
            "select name, sum(pgsize) from dbstat group by name order by sum(pgsize) desc limit 8"
        ).fetchall()
    whole = path.stat().st_size
    beyond = (whole - previews) / count
    print(
        f"{count:,} trajectories, {whole / 1e6:,.0f} MB: {whole / count:.0f} bytes each, {beyond:.0f} beyond previews"
    )
    print("  " + ", ".join(f"{name} {size / count:.0f}" for name, size in parts))
    return beyond <= BYTES_EACH


async def report_pages(path: Path) -> bool:
    """Print the time of each page; say whether all answered within Datasette's limits."""
    datasette = Datasette([str(path)], settings={"suggest_facets": False})
    await datasette.client.get("/")
    print(f"Datasette {installed.__version__}, limit of a query {datasette.setting('sql_time_limit_ms')} ms")
    met = True
    for page in PAGES:
        url, times, busy, fault = page.format(name=path.stem), [], [], ""
        for _ in range(REPEATS):
            begin, processor = time.perf_counter(), time.process_time()
            response = await datasette.client.get(url)
            times.append((time.perf_counter() - begin) * 1000)
            busy.append((time.process_time() - processor) * 1000)
            said = [words for words in TIMED_OUT if words in response.text]
            fault = f"  {response.status_code} {', '.join(said)}" if said or response.status_code != 200 else fault
        met &= not fault
        print(f"{statistics.median(times):8.1f} ms  {statistics.median(busy):8.1f} ms of processor  {url}{fault}")
    return met


def main() -> None:
    """Measure the index that is named, or one in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path, nargs="?", help="made where it does not exist (default: a temporary one)")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--prompts", type=int, default=125, help="prompt groups of a step")
    parser.add_argument("--rollouts", type=int, default=8, help="trajectories of a group")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.index or Path(folder) / "large.sqlite"
        if not path.exists():
            make_large_index(path, options.steps, options.prompts, options.rollouts)
        met = report_size(path)
        met &= asyncio.run(report_pages(path))
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
