"""The folder of an analysis: prompts, windows and unscored trajectories as CSV and JSON, and a Markdown report."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from ..arguments import file_path
from ..replacing import replacing
from .report import markdown_report
from .runs import RunAnalysis, count_scored, histograms
from .selection import Selection, UnscoredTrajectory


def write_analysis(
    folder: str | os.PathLike[str], selection: Selection, ks: Sequence[int], runs: Sequence[RunAnalysis]
) -> list[Path]:
    """Write prompts.csv, prompts.json, windows.csv, unscored.csv, analysis.json and report.md; return their paths.

    `selection` and `ks` are those that the runs were analysed with.
    """
    folder = file_path("folder", folder)
    folder.mkdir(parents=True, exist_ok=True)
    prompts = [metric.as_row() for run in runs for metric in run.metrics]
    analysis = whole_analysis(selection, ks, runs)
    unscored = [{"run": run.run, **item._asdict()} for run in runs for item in run.unscored]
    tables = {
        "prompts.csv": (prompts, ()),
        "windows.csv": (analysis["windows"], ()),
        "unscored.csv": (unscored, ("run", *UnscoredTrajectory._fields)),
    }
    texts = {
        "prompts.json": _json(prompts),
        "analysis.json": _json(analysis),
        "report.md": "\n".join(markdown_report(selection, ks, runs)) + "\n",
    }
    for name, (rows, columns) in tables.items():
        _write_csv(folder / name, rows, columns)
    for name, text in texts.items():
        with replacing(folder / name) as file:
            file.write(text.encode())
    return [folder / name for name in (*tables, *texts)]


def whole_analysis(selection: Selection, ks: Sequence[int], runs: Sequence[RunAnalysis]) -> dict[str, Any]:
    """Return what analysis.json holds: the selection, the runs with their rules and counts, windows and histograms."""
    return {
        "selection": {**selection.as_dict(), "k": list(ks)},
        "runs": [{"run": run.run, "success": run.rule, **count_scored(run), "amiss": run.amiss} for run in runs],
        "windows": [window.as_row() for run in runs for window in run.windows],
        "histograms": [histogram for run in runs for histogram in histograms(run, ks)],
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _write_csv(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    with replacing(path) as file, TextIOWrapper(file, encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(rows[0] if rows else columns)
        writer.writerows(row.values() for row in rows)
