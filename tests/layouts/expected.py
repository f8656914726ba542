"""What a reader must find in a run that a writer of this package made."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .files import Place


@dataclass
class Expected:
    """The trajectories of a written run, by their uid, and what can be counted of them.

    A uid is the recorded trace or rollout id; a row without one has "<file>@<byte offset>". Every value of
    `by_uid` has `messages` (the last branch, each message as recorded), `branches`, `reward` (None: unscored),
    `split`, `step` (by the folder, or by arrival in the stream layout), `file` (relative, without ".zst"),
    `line` (from 1), `offset` and `length` (uncompressed), `item` (the trace's place in an episode, else None),
    `effective` (seen under effective/, or annotated so), `ship_step`, `advantage`, and `streams` (branch index →
    name → values as annotated). An episode without traces is in `failed` only and counts as no trajectory.
    """

    root: Path  # what to give to the indexer
    by_uid: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # the ids of episodes without traces
    torn: dict[str, bytes] = field(default_factory=dict)  # file → the bytes that would complete its last line

    def note(self, uid: str | None, path: Path, place: Place, **facts: Any) -> str:
        """Note one written trajectory, its messages and reward at least, and return its uid."""
        file = path.relative_to(self.root).as_posix()
        uid = f"{file}@{place.offset}" if uid is None else uid
        given = {"branches": 1, "split": None, "step": None, "item": None, **facts}
        later: dict[str, Any] = {"effective": False, "ship_step": None, "advantage": None, "streams": {}}
        self.by_uid[uid] = {**later, **given, "file": file, **place._asdict()}
        return uid

    def ship(self, uid: str, **facts: Any) -> None:
        """Note that a trajectory is part of a batch, and what was said about it then."""
        self.by_uid[uid].update(effective=True, **facts)

    def _all(self, fact: str) -> list[Any]:
        return [found[fact] for found in self.by_uid.values()]

    @property
    def trajectories(self) -> int:
        return len(self.by_uid)

    @property
    def scored(self) -> int:
        return sum(reward is not None for reward in self._all("reward"))

    @property
    def reward_sum(self) -> float:
        return sum(reward or 0.0 for reward in self._all("reward"))

    @property
    def branches(self) -> int:
        return sum(self._all("branches"))

    @property
    def splits(self) -> dict[str | None, int]:
        return dict(Counter(self._all("split")))

    @property
    def steps(self) -> list[int]:
        return sorted(set(self._all("step")) - {None})

    @property
    def effective(self) -> int:
        return sum(self._all("effective"))

    @property
    def failed_episodes(self) -> int:
        return len(self.failed)

    @property
    def torn_tails(self) -> int:
        return len(self.torn)
