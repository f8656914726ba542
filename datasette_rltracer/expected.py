"""The expected answer of a task on the pages: of one trajectory, or what those of a prompt have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rltracer_sqlite.trajectory import Trajectory
from rltracer_sqlite.truth import truth_text

from .text import Text, cut

SHORT_ANSWER = 300  # characters; a longer one is folded
MOST_ANSWER = 20_000  # characters that are shown of one


@dataclass(frozen=True)
class Expected:
    """An expected answer: its text, or None where none is recorded; `differs` where records of one prompt disagree."""

    text: Text | None
    differs: bool = False

    @property
    def is_folded(self) -> bool:
        """Whether it is too long to stand among the facts as it is."""
        return self.text is not None and self.text.characters > SHORT_ANSWER


def expected_answer(trajectory: Trajectory) -> Expected:
    """Return the expected answer that a trajectory's record has."""
    return _shown(truth_text(trajectory.metadata.get("truth")))


def expected_of_all(texts: Iterable[str | None]) -> Expected:
    """Return the expected answer that records of one prompt have in common, from the text that each of them has."""
    found = list(dict.fromkeys(texts))
    return Expected(None, differs=True) if len(found) > 1 else _shown(found[0] if found else None)


def _shown(text: str | None) -> Expected:
    return Expected(None if text is None else cut(text, MOST_ANSWER))
