"""The table of measurements is made from what the benchmarks write, and says so where there is nothing yet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.comparison.operation import Operation
from benchmarks.comparison.processes import Measured
from benchmarks.comparison.results import Result
from scripts.docs_performance import measured


def run(seconds: float, peak: float) -> Measured:
    return Measured(wall=seconds, cpu=seconds, peak=peak, output={"answer": 1})


def document(*results: Result) -> dict[str, Any]:
    about = {
        "date": "2026-01-02",
        "machine": "2 cores (CPU)",
        "repeats": 3,
        "ours": {"python": "3.12", "orjson": "3.11"},
    }
    return {**about, "operations": [result.as_json() for result in results]}


def operation(name: str, **more: Any) -> Operation:
    return Operation(name, ours=lambda bench: None, **more)  # type: ignore[arg-type, return-value]


def test_each_operation_is_a_row(tmp_path: Path) -> None:
    fast = Result(operation("index M", bar=0.2, other_name="DuckDB"), ours=[run(1.0, 60.4)], other=[run(4.0, 900)])
    alone = Result(operation("refresh", seconds_bar=1), ours=[run(0.004, 20), run(0.006, 21)])
    failed = Result(operation("broken"), failure="no such file")
    (tmp_path / "results.json").write_text(json.dumps(document(fast, alone, failed)))
    head, _, names, line, *rows = measured(tmp_path / "results.json").splitlines()
    assert head == "Measured on 2026-01-02 on 2 cores (CPU), 3 runs of each side; python 3.12, orjson 3.11."
    assert names.count("|") == line.count("|")
    assert rows == [
        "| index M | DuckDB | ≤ 0.2, missed | **0.25** (0.25–0.25) | 1.00 s | 4.00 s | 60 | 900 |",
        "| refresh | – | ≤ 1.00 s | – | 5 ms | – | 21 | – |",
        "| broken | – | – | – | – | – | – | – |",
    ]


def test_without_measurements_nothing_is_claimed(tmp_path: Path) -> None:
    assert measured(tmp_path / "results.json") == "No measurements are kept with this version yet.\n"
