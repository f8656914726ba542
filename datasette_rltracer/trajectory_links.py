"""The links of a trajectory's page: each stays on the branch, in the view and within the filters of the visitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .addresses import (
    compare_url,
    group_url,
    permanent_url,
    row_url,
    run_url,
    step_url,
    table_url,
    trajectory_url,
)

if TYPE_CHECKING:
    from datasette.app import Datasette

LONGEST_NAMES = 1_000  # characters of the name of a run and a recorded id


class Links:
    """The addresses around one trajectory. `carried` are filters that other trajectories and groups are to pass."""

    def __init__(
        self,
        datasette: Datasette,
        database: str,
        row: Mapping[str, Any],
        carried: Sequence[tuple[str, str]],
        **place: Any,
    ) -> None:
        self._where = (datasette, database)
        self._row, self._carried, self._place = row, carried, place

    def here(self, **query: Any) -> str:
        """Return the address of this page with another branch, start or view."""
        return trajectory_url(*self._where, self._row["id"], pairs=self._carried, **{**self._place, **query})

    def to(self, trajectory: int) -> str:
        """Return the address of another trajectory, under the same filters and in the same view."""
        view, lens = self._place.get("view"), self._place.get("lens")
        return trajectory_url(*self._where, trajectory, pairs=self._carried, view=view, lens=lens)

    def group(self, group: int) -> str:
        """Return the address of a prompt group, under the same filters."""
        return group_url(*self._where, group, self._carried)

    def compare(self, other: int) -> str:
        """Return the address of this trajectory beside another."""
        return compare_url(*self._where, self._row["id"], other)

    def message(self, number: int, branch: int | None = None) -> str:
        """Return the address of a message that stays good when the index is made again."""
        which = f"branch={branch}&" if branch is not None else ""
        return f"{self.permanent}?{which}message={number}#m{number}"

    @cached_property
    def permanent(self) -> str:
        """Return the address of the trajectory that stays good when the index is made again.

        Every message has a link to it, so one of a very long id goes by the number of the trajectory.
        """
        if len(self._row["run"]) + len(self._row["uid"]) > LONGEST_NAMES:
            return trajectory_url(*self._where, self._row["id"])
        return permanent_url(*self._where, self._row["run"], self._row["uid"])

    @property
    def record(self) -> str:
        """Return the address of the record as it stands in its file."""
        return trajectory_url(*self._where, self._row["id"], "/record")

    @property
    def pretty(self) -> str:
        """Return the address of the record with line breaks."""
        return trajectory_url(*self._where, self._row["id"], "/record", pretty=1)

    @property
    def json(self) -> str:
        """Return the address of the decoded trajectory."""
        return trajectory_url(*self._where, self._row["id"], ".json", branch=self._place.get("branch"))

    @property
    def index_row(self) -> str:
        """Return the address of the trajectory's row in the index."""
        return row_url(*self._where, "trajectories", self._row["id"])

    @property
    def shard(self) -> str:
        """Return the address of the row of its file."""
        return row_url(*self._where, "shards", self._row["shard_id"])

    @property
    def run(self) -> str:
        """Return the address of its run's page."""
        return run_url(*self._where, self._row["run_id"])

    @property
    def step(self) -> str:
        """Return the address of the page of its step and split."""
        split = [] if self._row["split"] is None else [("split", self._row["split"])]
        return step_url(*self._where, self._row["run_id"], self._row["step"], split)

    @property
    def episode(self) -> str:
        """Return the address of all trajectories of its episode as a table."""
        return table_url(*self._where, "trajectories", run_id=self._row["run_id"], episode_id=self._row["episode_id"])
