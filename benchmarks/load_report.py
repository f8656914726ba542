"""What the readers of a load met with: counted while it goes on, then told in numbers and as a table."""

from __future__ import annotations

import argparse
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Measured:
    """What the readers met with, by kind of request."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: Counter[str] = field(default_factory=Counter)
    errors: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    memory: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))  # (minute, MB)
    stalled: str = "not ended by the server"
    largest_log: int = 0  # bytes
    lags: list[float] = field(default_factory=list)  # seconds from a written line to its row


def described(measured: Measured, options: argparse.Namespace) -> dict[str, Any]:
    """Return what was measured as plain values: milliseconds, megabytes, and megabytes a minute."""
    kinds = {
        kind: {
            "requests": len(seconds),
            "p50_ms": round(1000 * statistics.median(seconds)),
            "p95_ms": round(1000 * percentile(seconds, 0.95)),
            "worst_ms": round(1000 * max(seconds)),
        }
        for kind, seconds in sorted(measured.seconds.items())
    }
    memory = {
        name: {"peak_mb": round(max(mb for _, mb in found)), "slope_mb_per_minute": round(slope(found), 2)}
        for name, found in measured.memory.items()
    }
    return {
        "minutes": options.minutes,
        "readers": options.readers,
        "requests": sum(one["requests"] for one in kinds.values()),
        "kinds": kinds,
        "refused": dict(measured.refused),
        "errors": {kind: dict(found.most_common(5)) for kind, found in measured.errors.items()},
        "memory": memory,
        "index_lag_s": {"p50": round(statistics.median(measured.lags), 1), "worst": round(max(measured.lags), 1)},
        "largest_log_mb": round(measured.largest_log / 1e6),
        "stalled_download": measured.stalled,
    }


def percentile(values: list[float], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def slope(points: list[tuple[float, float]]) -> float:
    """Return how much the second of two numbers grows with the first, over the second half: the first one warms up."""
    late = points[len(points) // 2 :]
    return statistics.linear_regression(*zip(*late, strict=True)).slope if len(late) > 2 else 0.0


def as_text(report: dict[str, Any], kinds: Iterable[str]) -> str:
    """Return the report for people, as Markdown, its kinds of requests in their order."""
    lines = [
        f"{report['requests']:,} requests by {report['readers']} readers in {report['minutes']:g} minutes.\n",
        "| kind | requests | p50 ms | p95 ms | worst ms | refused | errors |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind in kinds:
        one = report["kinds"].get(kind, {"requests": 0, "p50_ms": "", "p95_ms": "", "worst_ms": ""})
        failed = sum(report["errors"].get(kind, {}).values())
        refused = report["refused"].get(kind, 0)
        lines.append(f"| {kind} | " + " | ".join(str(value) for value in (*one.values(), refused, failed)) + " |")
    lines.append("")
    for name, one in report["memory"].items():
        lines.append(f"Memory of the {name}: at most {one['peak_mb']} MB, {one['slope_mb_per_minute']:+} MB a minute.")
    lag = report["index_lag_s"]
    lines.append(f"From a written line to its row: {lag['p50']} s, at worst {lag['worst']} s.")
    lines.append(f"The write-ahead log had at most {report['largest_log_mb']} MB.")
    lines.append(f"The stalled download was {report['stalled_download']}.")
    lines += [
        f"Error, {kind}: {count} × {what}" for kind, one in report["errors"].items() for what, count in one.items()
    ]
    return "\n".join(lines)
