"""What a trajectory is by its run's success rule, in the words that people read and write everywhere."""

from __future__ import annotations

# What rltracer 0.1.0 calls these in its preferences and in the summary of an export; both are taken.
NAMED_BEFORE = {"correct": "passed", "incorrect": "failed"}


def outcome(success: object) -> str:
    """Return the word for a value of trajectories.success."""
    return "passed" if success == 1 else "failed" if success == 0 else "unscored"
