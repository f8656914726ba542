"""The table of measurements for the documentation, from what `benchmarks/compare.py` has written as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results.json"
HEADINGS = (
    "operation", "compared with", "wanted", "ratio: median (min–max)", "ours", "other", "our MiB", "other's MiB",
)  # fmt: skip


def measured(path: Path = RESULTS, only_wanted: bool = False) -> str:
    """Return a line on date and machine with a table, or one that says that nothing has been measured yet.

    With `only_wanted` the table has the operations of which something is demanded.
    """
    if not path.exists():
        return "No measurements are kept with this version yet.\n"
    about = json.loads(path.read_text(encoding="utf-8"))
    operations = [one for one in about["operations"] if not only_wanted or _demand(one) != "–"]
    packages = ", ".join(f"{name} {version}" for name, version in about["ours"].items())
    head = f"Measured on {about['date']} on {about['machine']}, {about['repeats']} runs of each side; {packages}."
    rows = [HEADINGS, ("---", "---", *["---:"] * (len(HEADINGS) - 2)), *map(_row, operations)]
    return f"{head}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(operation: dict[str, Any]) -> tuple[str, ...]:
    if operation["failure"]:
        return (operation["operation"], *["–"] * (len(HEADINGS) - 1))
    ratio, against = operation["ratio"], operation["against"]
    spread = f"**{_number(ratio['median'])}** ({_number(ratio['min'])}–{_number(ratio['max'])})" if ratio else "–"
    sides = (operation["ours"], operation["other"])
    seconds = [_seconds(median(side["seconds"])) if side["seconds"] else "–" for side in sides]
    peaks = [f"{max(side['peak_mib']):.0f}" if side["peak_mib"] else "–" for side in sides]
    return (operation["operation"], against or "–", _wanted(operation), spread, *seconds, *peaks)


def _wanted(operation: dict[str, Any]) -> str:
    """Return what is demanded of an operation, and whether it was missed."""
    return f"{_demand(operation)}, missed" if operation["misses"] else _demand(operation)


def _demand(operation: dict[str, Any]) -> str:
    bar, limit = operation["bar"], operation["seconds_bar"]
    return f"≤ {bar:g}" if bar is not None else f"≤ {_seconds(limit)}" if limit is not None else "–"


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.2g} ms" if value < 0.01 else f"{value * 1000:.0f} ms"
