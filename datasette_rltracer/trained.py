"""Whether a trajectory was trained on, or kept by its evaluation, in words; and why that is not known of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .figures import number

ALL_ROLLOUTS = "traces"  # the layout whose records are in all/, and those of a batch in effective/ too


def training_words(row: Mapping[str, Any], group: Mapping[str, Any]) -> tuple[str, str]:
    """Return whether a trajectory was trained on (yes, no or unknown), and that in words with the likely reason.

    Of an evaluation it is whether that kept it. Only `effective` is recorded; the reason is what the index shows of the
    trajectory and of its group.
    """
    if row["effective"] == 1:
        later = group["split"] != "eval" and row["ship_step"] not in (None, group["step"])
        return "yes", f"yes, in step {number(row['ship_step'])}" if later else "yes"
    reason = None
    if row["error_type"] or row["ok"] == 0:
        reason = "it ended with an error"
    elif row["reward"] is None:
        reason = "it has no reward"
    elif group["zero_variance"] == 1:
        reason = "all rewards of the group are equal"
    if row["effective"] == 0:
        return "no", f"no: {reason}" if reason else "no, and why is not recorded"
    return "unknown", f"not recorded; {reason}" if reason else "not recorded"


def unlisted_words(row: Mapping[str, Any], split: str | None) -> str:
    """Return why it is not known of a row whether it was trained on, where its place tells; else ""."""
    if row["effective"] is not None or row["layout"] != ALL_ROLLOUTS:
        return ""
    file = "the file of what the evaluation kept" if split == "eval" else "the effective batch's file"
    return f"not in {file}, which may yet be written"
