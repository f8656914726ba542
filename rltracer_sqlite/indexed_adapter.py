"""The adapter of this project: any source behind the shared index, read step by step as it is asked for."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from shlex import quote
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import finalize

from .arguments import file_path, shown, step_number, text, whole_number
from .index import queries
from .index.database import open_index
from .loading import loaded, located
from .on_demand import brought_up_to_date, cached_index
from .reprs import short
from .roots import Roots
from .scores import MOST_RANKED, Scores
from .sources import missing
from .sources.base import LocatorError, Source, SourceError
from .sources.places import Root, place, real_place, relist
from .sources.remote import RemoteRoot
from .trajectory import Trajectory

if TYPE_CHECKING:
    from typing_extensions import Self

    from .index.among import Among


class IndexedAdapter:
    """Any source behind the shared index: an Adapter for the files at `root`, a path or a URL.

    Nothing is opened before a step's prompts are asked for; then only that step's shards are read, and only
    what is new in them. `index=None` keeps the index in the user's cache folder, never inside the run.
    With `refresh=False` the index is taken as it is, and only loading a trajectory opens a file.
    Every method raises SourceError for a run and IndexFileError for an index that cannot be read.
    `with` or `close()` ends it, and so does forgetting it; asked again, it opens the index again. Threads may share it,
    and pickling it takes everything but what is open.
    """

    def __init__(
        self,
        source: Source,
        root: str | os.PathLike[str] | RemoteRoot,
        index: str | os.PathLike[str] | None = None,
        refresh: bool = True,
    ) -> None:
        if isinstance(source, type) or not hasattr(source, "scan"):
            raise TypeError(f"source is {shown(source)}: it is a source, as source_named gives.")
        self.source, self.refreshes = source, refresh
        self.rollout_dir: Root = place(root).absolute()
        self.index = file_path("index", index) if index is not None else cached_index(self.rollout_dir)
        # A connection that is closed while another thread asks it ends the whole process.
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._closing: finalize[[], IndexedAdapter] | None = None
        self._run_id: int | None = None
        self._roots: Roots | None = None  # of what an index leads to; a place that was given is allowed itself

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {short(str(self.rollout_dir), 200)}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_connection": None, "_closing": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    def list_steps(self) -> list[int | None]:
        """Return the steps, from the names of the files and from what is indexed; a stream is read for its steps."""
        with self._lock:
            if not self.refreshes:
                return queries.steps(self.connection, self.run_id)
            relist(self.rollout_dir)
            shards = [shard for shard in self.source.shards(self.rollout_dir) if not (shard.producer or shard.aside)]
            steps: set[int | None] = {shard.step for shard in shards if shard.step is not None}
            if any(shard.step is None for shard in shards):
                self._refresh(lambda number: number is None)
                steps.update(queries.steps(self.connection, self.run_id))
            return [*sorted(step for step in steps if step is not None), *([None] if None in steps else [])]

    def ensure_step_indexed(self, step: int | None) -> None:
        """Read what is new in the shards of a step; None are the trajectories without one."""
        asked = (step_number(step), None)  # what tells no step may hold any
        if self.refreshes:
            self._refresh(lambda number: number in asked)

    def ensure_trajectory_indexed(self, trajectory: int | str) -> None:
        """See that the index of a run's folder knows a trajectory, by its id or by its recorded one.

        Ids are given as steps are read: where none of those read so far has it, what is new in all others is read.
        """
        if self.refreshes and not self._knows(trajectory):
            self._refresh(lambda number: True)

    def _knows(self, trajectory: int | str) -> bool:
        with self._lock:
            if not self.index.exists() or (run_id := self._known_run()) is None:
                return False
            return queries.is_trajectory(self.connection, run_id, trajectory)

    def list_prompts(self, step: int | None) -> list[tuple[str, int, str]]:
        """Return (key, number of trajectories, preview) of the prompts of a step."""
        with self._lock:
            return queries.list_prompts(self.connection, self.run_id, step_number(step))

    def prompt_scores(self, step: int | None) -> dict[str, Scores]:
        """Return what the index knows of each prompt of a step, by its key."""
        from .index.lists import group_facts

        with self._lock:
            facts = group_facts(self.connection, self.run_id, step_number(step))
        return {key: Scores(*(fact[name] for name in Scores._fields)) for key, fact in facts.items()}

    def step_scores(self, step: int | None) -> Scores | None:
        """Return what the index knows of a step, without opening a shard.

        It is of train, where the step has any of it. None where the index knows nothing of the step yet.
        """
        with self._lock:
            if not self.index.exists() or (run_id := self._known_run()) is None:
                return None
            return queries.step_scores(self.connection, run_id, step_number(step))

    def group_ends(self, step: int | None, prompt_key: str) -> tuple[int, int] | None:
        """Return the ids of the best and the worst trajectory of a prompt in a step, by their rewards.

        Of equal rewards the first of the best and the last of the worst are meant, as on pages. None where all are
        equal, or fewer than two have one.
        """
        from .index.over_steps import ends_of_group

        ids = self.list_trajectory_ids(step, prompt_key)
        with self._lock:
            return ends_of_group(self.connection, ids)

    def ranked_prompts(
        self,
        limit: int | None = MOST_RANKED,
        split: str | None = None,
        env: str | None = None,
        is_easiest: bool = False,
    ) -> list[dict[str, Any]]:
        """Return a row for each of the prompts with the lowest or the highest pass rates over all steps indexed so far.

        The rows are those of `rltracer inspect --hardest N --json` without the best and the worst, for which
        `prompt_over_steps` is asked; with `limit=None` all scored prompts have one.
        Raises ValueError for a split or an environment that the run has not.
        """
        from .index.contents import nothing_there
        from .index.ranked import ranked_prompts

        most, among = -1 if limit is None else whole_number("limit", limit), _among(split, env)
        with self._lock:
            where = (self.connection, self.run_id)
            missing = None if among.is_all else nothing_there(*where, split=split, env=env)
            if missing is not None:
                raise ValueError(missing)
            rows, _ = ranked_prompts(*where, most, among, is_easiest)
        return rows

    def prompt_over_steps(self, number: int, split: str | None = None, env: str | None = None) -> list[dict[str, Any]]:
        """Return a row for each step and split of a prompt, as `rltracer inspect --prompt --json` gives them."""
        from .index.over_steps import groups_of_prompts

        number, among = whole_number("number", number), _among(split, env)
        with self._lock:
            return groups_of_prompts(self.connection, self.run_id, [number], among)

    def list_trajectory_ids(self, step: int | None, prompt_key: str) -> list[int]:
        """Return the ids of a prompt's trajectories in a step; [] for a key that is not one of `list_prompts`."""
        step, key = step_number(step), text("prompt_key", prompt_key)
        with self._lock:
            return queries.list_trajectory_ids(self.connection, self.run_id, step, key)

    def load_trajectory(self, trajectory_id: int) -> Trajectory:
        """Decode one trajectory, reading its bytes only. Raises LocatorError, also for one of another run."""
        trajectory_id = whole_number("trajectory_id", trajectory_id)
        roots = Roots([self.rollout_dir]) if self._roots is None else self._roots
        with self._lock:
            found = queries.run_of_trajectory(self.connection, trajectory_id)
            if found is not None and found[0] != self.run_id:
                raise LocatorError(
                    f"Trajectory {trajectory_id} is not of this run but of the run {found[1]}. Show it with: "
                    f"rltracer inspect {quote(str(self.index))} --trajectory {trajectory_id}"
                )
            found_there = located(self.connection, trajectory_id, roots)
        return loaded(*found_there, roots, self.source)

    def close(self) -> None:
        """Close the index. It is opened again where it is asked for."""
        with self._lock:
            if self._closing is not None:
                self._closing()
            self._connection = self._closing = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _refresh(self, steps: Callable[[int | None], bool]) -> None:
        if not self.rollout_dir.exists():
            raise SourceError(missing(self.rollout_dir))
        with self._lock:
            self.close()
            reading = brought_up_to_date(self.index, self.source, self.rollout_dir, "reading a step", steps=steps)
            try:
                with reading as (_, done):
                    self._run_id = done.run_id
            finally:
                relist(self.rollout_dir)

    @property
    def connection(self) -> sqlite3.Connection:
        """The index, opened for reading when it is first asked for. Raises IndexFileError.

        Raises SourceError where it is one that is made as the run is read, and nothing has been read.
        """
        with self._lock:
            if self._connection is None:
                if self.refreshes and not self.index.exists():
                    raise SourceError(
                        f"Nothing of {self.rollout_dir} has been read yet, and ids are given as it is read: "
                        f"RLTracer.step(N).prompts() reads a step."
                    )
                self._connection = open_index(self.index)
                self._closing = finalize(self, self._connection.close)
            return self._connection

    @property
    def run_id(self) -> int:
        """The number of the run in the index. Raises SourceError where it is not in it yet."""
        if (known := self._known_run()) is None:
            raise SourceError(f"{self.rollout_dir} is not in {self.index} yet.")
        return known

    def _known_run(self) -> int | None:
        if self._run_id is None:
            root = str(real_place(self.rollout_dir))
            self._run_id = next((run.id for run in queries.runs(self.connection) if run.root == root), None)
        return self._run_id


def _among(split: str | None, env: str | None) -> Among:
    """Return the split and the environment that are asked for. Raises TypeError and ValueError for what is no text."""
    from .index.among import Among

    return Among(*(None if value is None else text(name, value) for name, value in (("split", split), ("env", env))))
