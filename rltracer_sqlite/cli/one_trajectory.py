"""A trajectory that `rltracer inspect` is asked for: which one is meant, its row in the index, and its record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3

    from ..adapter import IndexedAdapter
    from ..sources.base import LocatorError
    from ..trajectory import Trajectory


def loaded(adapter: IndexedAdapter, number: int, row: dict[str, Any]) -> Trajectory:
    """Return a trajectory. Raises LocatorError, which says how a run is found that has been moved."""
    from ..sources.base import LocatorError

    try:
        return adapter.load_trajectory(number)
    except LocatorError as error:
        raise explained(adapter, row, error) from None


def explained(adapter: IndexedAdapter, row: dict[str, Any], error: LocatorError) -> LocatorError:
    """Return the error with what to type where the files of an index's run are in another folder now."""
    from ..index.vanished import is_missing
    from .vanished import if_moved

    is_of_it = row.get("run_id") == adapter.run_id
    if adapter.refreshes or not is_of_it or not is_missing(adapter.rollout_dir, row["shard_path"]):
        return error
    return type(error)(f"{error}{if_moved(adapter.index, row['run'])}")


def row_of(adapter: IndexedAdapter, number: int) -> dict[str, Any]:
    """Return what the index has of a trajectory, with the number of its prompt, and whether it has other runs."""
    from ..index.queries import key_of_prompt, prompt_of_trajectory, runs, trajectory_row

    row = trajectory_row(adapter.connection, number) or {}
    prompt = prompt_of_trajectory(adapter.connection, number)
    of_several = len(runs(adapter.connection)) > 1
    key = key_of_prompt(adapter.connection, prompt)
    return {**row, "prompt_id": prompt, "prompt_key": key, "is_one_of_several": of_several}


def only_one(connection: sqlite3.Connection, asked: str) -> int:
    """Return the number of the trajectory that a number, or a recorded id or its beginning, means.

    Raises SourceError where there is no such trajectory, or more than one.
    """
    from ..index.queries import no_trajectory, trajectories_named
    from ..sources.base import SourceError

    found = trajectories_named(connection, asked)
    if not found:
        raise SourceError(no_trajectory(connection, asked))
    if len(found) > 1:
        raise SourceError(
            f"Several trajectories have the id {asked}: give one by number, {', '.join(map(str, found))}."
        )
    return found[0]
