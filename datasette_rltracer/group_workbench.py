"""The group that a workbench shows, what its page is narrowed to, and the addresses that stay within that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .addresses import group_url, prompt_url, step_url, trajectory_url
from .selection import Pair, Selection

if TYPE_CHECKING:
    from datasette.app import Datasette


@dataclass(frozen=True)
class Workbench:
    """A prompt group and the two selections of its page: of groups beside it, and of its own trajectories."""

    datasette: Datasette
    database: str
    group: Mapping[str, Any]
    groups: Selection
    rows: Selection

    @property
    def pairs(self) -> list[Pair]:
        """Return what a link carries to stay inside both selections."""
        return [*self.groups.pairs, *self.rows.pairs]

    def here(self, rows: Selection, start: int | None = None) -> str:
        """Return the address of this page with another selection of trajectories."""
        pairs = [*self.groups.pairs, *rows.pairs, ("start", start)]
        return group_url(self.datasette, self.database, self.group["id"], pairs)

    def beside(self, group: int | None) -> str | None:
        """Return the address of another group, under the same filters of groups."""
        return None if group is None else group_url(self.datasette, self.database, group, self.groups.pairs)

    def trajectory(self, identity: int, **query: Any) -> str:
        """Return the address of a trajectory, under the same filters."""
        return trajectory_url(self.datasette, self.database, identity, pairs=self.pairs, **query)

    def step_url(self) -> str:
        """Return the address of the group's step, with those of its filters that are not the step itself."""
        own = {"run_id", "step", "step__isnull"}
        pairs = [pair for pair in self.groups.pairs if pair[0] not in own]
        return step_url(self.datasette, self.database, self.group["run_id"], self.group["step"], pairs)

    def prompt_url(self) -> str:
        """Return the address of the group's prompt over all steps, in the split and environment of the group."""
        kind = [(name, self.group[name]) for name in ("split", "env")]
        return prompt_url(self.datasette, self.database, self.group["run_id"], self.group["prompt_id"], kind)
