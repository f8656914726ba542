"""From measurements to a table: ratios, peak memory and the share of raw reading, as JSON and Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

from .bench import Bench
from .environments import OURS, PEER, versions
from .operation import Operation
from .processes import Measured


@dataclass
class Result:
    """The measurements of one operation; the runs of both sides were taken in turn."""

    operation: Operation
    ours: list[Measured] = field(default_factory=list)
    other: list[Measured] = field(default_factory=list)
    raw: list[float] = field(default_factory=list)  # seconds of reading the same bytes
    peak_bar: float | None = None  # MiB
    failure: str = ""  # what a program printed that could not be run

    def seconds(self, runs: Sequence[Measured]) -> list[float]:
        """Return the time of each run, as the operation compares it."""
        return [median(run.inside) if self.operation.in_process else run.wall for run in runs]

    @property
    def ratios(self) -> list[float]:
        """Our time divided by the other's, for each pair of runs that followed each other; none without another."""
        if not self.other:
            return []
        return [a / b for a, b in zip(self.seconds(self.ours), self.seconds(self.other), strict=True) if b]

    @property
    def equal(self) -> bool | None:
        """Whether both sides gave the same answer every time; None where there is no other side."""
        if not self.other:
            return None
        expected = self.other[0].output.get("answer")
        return expected is not None and all(run.output.get("answer") == expected for run in (*self.ours, *self.other))

    @property
    def misses(self) -> list[str]:
        """The demands that are not met."""
        operation, found = self.operation, []
        if self.failure:
            return ["could not be run"]
        if self.equal is False:
            found.append("the answers differ")
        if operation.bar is not None and median(self.ratios) > operation.bar:
            found.append(f"ratio above {operation.bar:g}")
        if operation.seconds_bar is not None and median(self.seconds(self.ours)) > operation.seconds_bar:
            found.append(f"above {operation.seconds_bar * 1000:g} ms")
        if self.peak_bar is not None and max(run.peak for run in self.ours) > self.peak_bar:
            found.append(f"peak above {self.peak_bar:.0f} MiB")
        return found

    def as_json(self) -> dict[str, Any]:
        """Return everything that was measured."""
        operation = self.operation
        return {
            "operation": operation.name,
            "against": operation.other_name if self.other else None,
            "in_process": operation.in_process,
            "bar": operation.bar,
            "seconds_bar": operation.seconds_bar,
            "peak_bar_mib": self.peak_bar,
            "ratio": _summary(self.ratios),
            "ours": self._side(self.ours),
            "other": self._side(self.other),
            "raw_read_seconds": self.raw,
            "share_of_raw_read": self.share,
            "equal": self.equal,
            "misses": self.misses,
            "failure": self.failure or None,
        }

    def _side(self, runs: Sequence[Measured]) -> dict[str, Any]:
        return {
            "seconds": self.seconds(runs),
            "wall": [run.wall for run in runs],
            "cpu": [run.cpu for run in runs],
            "peak_mib": [run.peak for run in runs],
        }

    @property
    def share(self) -> float | None:
        """Return how near our speed comes to only reading the bytes; None where it does not read them all."""
        return median(self.raw) / median(self.seconds(self.ours)) if self.raw else None

    def as_row(self) -> list[str]:
        """Return the cells of the Markdown table."""
        if self.failure:
            return [self.operation.name, *["–"] * (len(HEADINGS) - 2), "; ".join(self.misses)]
        ratios, bar = self.ratios, self.operation.bar
        spread = f"**{_number(median(ratios))}** ({_number(min(ratios))}–{_number(max(ratios))})" if ratios else "–"
        against = "" if self.operation.other_name == "rltracer 0.1.0" else f" ({self.operation.other_name})"
        return [
            self.operation.name,
            f"{bar:g}" if bar is not None else "–",
            spread,
            _seconds(median(self.seconds(self.ours))),
            _seconds(median(self.seconds(self.other))) + against if self.other else "–",
            f"{max(run.peak for run in self.ours):.0f}",
            f"{max(run.peak for run in self.other):.0f}" if self.other else "–",
            f"{self.share:.0%}" if self.share else "–",
            "; ".join(self.misses) or "yes",
        ]


HEADINGS = [
    "operation",
    "at most",
    "ratio: median (min–max)",
    "ours",
    "other",
    "our MiB",
    "other's MiB",
    "of raw read",
    "met",
]


def document(results: Sequence[Result], bench: Bench, repeats: int) -> dict[str, Any]:
    """Return the results with what they were measured on and with."""
    ours = versions(bench.environment(OURS))
    peer = versions(bench.environment(PEER))
    named = ("python", "sqlite", "orjson", "msgspec", "datasette-rltracer")
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "machine": machine(),
        "repeats": repeats,
        "ours": {name: ours[name] for name in named if name in ours},
        "rltracer": {name: peer[name] for name in ("python", "rltracer", "orjson") if name in peer},
        "operations": [result.as_json() for result in results],
    }


def markdown(results: Sequence[Result], about: dict[str, Any]) -> str:
    """Return the table with a line on its date and machine."""
    rows = [HEADINGS, ["---", *["---:"] * (len(HEADINGS) - 2), "---"], *(result.as_row() for result in results)]
    packages = ", ".join(f"{name} {version}" for name, version in about["ours"].items())
    measured = f"Measured on {about['date']} on {about['machine']}, {about['repeats']} runs of each side in turn"
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{measured}; {packages}.\n\n{table}\n"


def machine() -> str:
    """Return a line on the processor, its cores and the memory."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (OSError, StopIteration, ValueError):
        model, memory = platform.machine(), ""
    return f"{os.cpu_count()} cores ({model}{memory})"


def _summary(values: Sequence[float]) -> dict[str, float] | None:
    return {"median": median(values), "min": min(values), "max": max(values)} if values else None


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.2g} ms" if value < 0.01 else f"{value * 1000:.0f} ms"
