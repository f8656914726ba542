"""Pass rates of prompts in windows of steps, from an index: metrics, summaries and a report."""

from __future__ import annotations

from .files import whole_analysis, write_analysis
from .metrics import PromptMetric, prompt_metrics
from .runs import RunAnalysis, analyse_run
from .selection import PromptCount, Selection, UnscoredTrajectory, list_unscored, read_counts
from .windows import WindowSummary, summarise_windows

__all__ = [
    "PromptCount",
    "PromptMetric",
    "RunAnalysis",
    "Selection",
    "UnscoredTrajectory",
    "WindowSummary",
    "analyse_run",
    "list_unscored",
    "prompt_metrics",
    "read_counts",
    "summarise_windows",
    "whole_analysis",
    "write_analysis",
]
