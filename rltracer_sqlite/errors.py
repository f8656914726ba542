"""What is raised for a run, a file or a record that cannot be read: sentences that say what to do."""

from __future__ import annotations


class SourceError(ValueError):
    """A run or a shard that cannot be read, in a sentence that says what to do."""


class NotRollouts(SourceError):
    """A file that holds no rollouts; the sentence says what it holds instead."""


class KnownOther(NotRollouts):
    """A file of a kind that is known to hold something else: it is left aside, and that is no problem."""


class LocatorError(SourceError):
    """A locator that points outside its root, at nothing, or at a record that has changed."""
