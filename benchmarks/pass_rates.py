"""Measure facets and charts on a million trajectories with the Datasette that is installed.

    python -m benchmarks.pass_rates [INDEX]

makes the index first where it does not exist (about 20 s, 400 MB). A facet that times out is an error.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import datasette as installed
from datasette.app import Datasette

from rltracer_sqlite.charts import CHARTS
from tests.index_factory import make_large_index

FACETS = {
    "prompt_groups?_facet_passrate=pass_rate": [
        "", "run_id=1", "env=math", "split=train", "step=77", "step__gte=100", "zero_variance=1", "env=math&split=eval",
        "pass_rate__gte=0.25&pass_rate__lt=0.5",
    ],
    "trajectories?_facet_passrate=group_pass_rate": [
        "", "run_id=1", "env=math", "split=train", "success=1", "step=77", "step__gte=100", "stop_condition=length",
        "env=math&success=0&split=train", "group_pass_rate__exact=0",
        "run_id=1&group_pass_rate__gte=0.25&group_pass_rate__lt=0.5",
    ],
    "trajectories?_facet_outcome=success": [
        "", "run_id=1", "env=math", "split=train", "success=1", "step=77", "step__gte=100", "stop_condition=length",
        "env=math&split=train", "group_pass_rate__exact=0", "run_id=1&error_type__notnull=1",
    ],
}  # fmt: skip
REPEATS = 5


async def measure(path: Path) -> None:
    """Print the median time of each facet's request and of each chart's, in milliseconds."""
    # The facets that the plugin's metadata shows on every page are Datasette's own, and measured apart from these.
    tables: dict[str, Any] = {table.partition("?")[0]: {"facets": []} for table in FACETS}
    metadata = {"databases": {path.stem: {"tables": tables}}}
    datasette = Datasette([str(path)], metadata=metadata, settings={"suggest_facets": False})
    await datasette.client.get("/")
    print(f"Datasette {installed.__version__}, facet limit {datasette.setting('facet_time_limit_ms')} ms")
    for table, filters in FACETS.items():
        for given in filters:
            url = f"/{path.stem}/{table}&{given}&_nocount=1&_size=0&_extra=facet_results"
            milliseconds, response = await _median(datasette, url.replace("?", ".json?", 1))
            facets = response.json()["facet_results"]
            found = facets.get("results", facets)
            column = table.partition("=")[2]
            if column not in found:
                raise SystemExit(f"{url} timed out")
            rows = sum(value["count"] for value in found[column]["results"])
            print(f"{milliseconds:7.1f} ms  {table.partition('?')[0]:14} {given or '(all)':52} {rows:>9,} rows")
    total = 0.0
    for chart in CHARTS:
        milliseconds, _ = await _median(datasette, f"/-/rltracer/{path.stem}/run/1/charts/{chart}.json")
        total += milliseconds
        print(f"{milliseconds:7.1f} ms  chart {chart}")
    page, _ = await _median(datasette, f"/-/rltracer/{path.stem}/run/1/charts")
    print(f"{page:7.1f} ms  the page around the charts")
    print(f"{total + page:7.1f} ms  all of the page's data, one after the other")


async def _median(datasette: Datasette, url: str) -> tuple[float, Any]:
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        response = await datasette.client.get(url)
        times.append((time.perf_counter() - begin) * 1000)
        if response.status_code != 200:
            raise SystemExit(f"{url} answered {response.status_code}: {response.text[:300]}")
    return sorted(times)[REPEATS // 2], response


def main() -> None:
    """Measure the index that is named, or one in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", nargs="?", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = asked.index or Path(folder) / "large.sqlite"
        if not path.exists():
            make_large_index(path)
        asyncio.run(measure(path))


if __name__ == "__main__":
    main()
