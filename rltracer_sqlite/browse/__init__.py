"""Many runs below one folder: finding them by the names of their files, and reading a step when it is asked for."""

from __future__ import annotations

from .find import Found, RunFolder, find_runs, run_folder_path
from .outcome import why_nothing_is_read
from .steps import ALL_STEPS, StepFiles, needs_reading, parse_step, run_steps, step_key

__all__ = [
    "ALL_STEPS",
    "Found",
    "RunFolder",
    "StepFiles",
    "find_runs",
    "needs_reading",
    "parse_step",
    "run_folder_path",
    "run_steps",
    "step_key",
    "why_nothing_is_read",
]
