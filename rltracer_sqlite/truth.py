"""The expected answer of a task, which a rollout is judged by: where it is recorded, and as a text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

NAMES = ("answer", "ground_truth", "solution", "target")  # of the fields of a task that hold it, the first of them
UNSHOWN = "(too deep or too long a number to be shown here; the record has it)"


def recorded_truth(task: Any, beside: Any = None) -> Any:
    """Return the expected answer that a task records, in its data or at its own root, or else the one `beside` it.

    It is returned as recorded; None where there is none, as for an empty text or list.
    """
    data = task.get("data") if isinstance(task, Mapping) and isinstance(task.get("data"), Mapping) else task
    inside = [data.get(name) for name in NAMES] if isinstance(data, Mapping) else []
    return next((value for value in (*inside, beside) if bare(value) is not None), None)


def bare(truth: Any) -> Any:
    """Return an expected answer without the lists of one around it; None where it holds nothing."""
    while isinstance(truth, list) and len(truth) == 1:
        truth = truth[0]
    return None if truth in ("", []) else truth


def truth_text(truth: Any) -> str | None:
    """Return an expected answer as a text: as it is, or as JSON where it is none; None where none is recorded."""
    truth = bare(truth)
    if truth is None or isinstance(truth, str):
        return truth
    try:
        return json.dumps(truth, ensure_ascii=False, default=str)
    except (RecursionError, TypeError, ValueError):
        return UNSHOWN
