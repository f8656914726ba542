"""How often something was met that a note is about, and the first trajectories that it was met in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

MOST_SHOWN = 3


@dataclass
class Met:
    """A count, and a few trajectories to look at: by their ids, as pages and `rltracer inspect` know them."""

    count: int = 0
    first: list[str] = field(default_factory=list)  # one more than is shown, where there are more

    def add(self, trajectories: Iterable[str], count: int = 1) -> None:
        """Count something that was met in these trajectories."""
        self.count += count
        for one in trajectories:
            if len(self.first) <= MOST_SHOWN and one not in self.first:
                self.first.append(one)

    @property
    def where(self) -> str:
        """The first trajectories in brackets, to stand behind a word: " (trajectories 3, 7, 12, …)"."""
        if not self.first:
            return ""
        if len(self.first) == 1:
            return f" (trajectory {self.first[0]})"
        more = ["…"] if len(self.first) > MOST_SHOWN else []
        return f" (trajectories {', '.join(self.first[:MOST_SHOWN] + more)})"
