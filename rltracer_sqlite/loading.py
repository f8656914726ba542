"""One trajectory of an index: where its record is, what reads it, and what the record says now."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .index import queries
from .roots import Roots, allowed_tokenizer
from .sources import source_named
from .sources.base import Locator, LocatorError, Source, SourceError
from .sources.files import file_there
from .sources.places import Root
from .trajectory import Trajectory

if TYPE_CHECKING:
    from .tokens.streams import Tokens


def run_source(run: queries.Run, roots: Roots) -> Source:
    """Return the source of a run of an index, with the tokenizer that the index names where that may be used.

    Raises SourceError where the source is not installed.
    """
    return source_named(run.source, allowed_tokenizer(run.tokenizer, roots)[0], run.mapping)


def load_trajectory(connection: sqlite3.Connection, trajectory_id: int, roots: Roots) -> Trajectory:
    """Return the trajectory behind a row of an index, reading its record's bytes only.

    The tokenizer is the one that the index names. Where it may not or cannot be used, token ids have no text, and
    `metadata["remarks"]` say why. Raises RootNotAllowed where the run's folder may not be read, and LocatorError where
    the record is missing or has changed.
    """
    return loaded(*located(connection, trajectory_id, roots), roots)


def located(
    connection: sqlite3.Connection, trajectory_id: int, roots: Roots
) -> tuple[Mapping[str, Any], Root, list[Locator], str | None]:
    """Return the row of a trajectory, where its run is, where its record and later facts are, and its misfit.

    Raises RootNotAllowed and LocatorError as `load_trajectory` does. Nothing of the run is read yet.
    """
    row = queries.trajectory_row(connection, trajectory_id)
    if row is None:
        raise LocatorError(queries.no_trajectory(connection, trajectory_id))
    root = roots.check(row["root"])
    there = [replace(one, file=file_there(root, one)) for one in queries.locators(connection, row)]
    return row, root, there, queries.misfit(connection, row)


def loaded(
    row: Mapping[str, Any],
    root: Root,
    locators: Sequence[Locator],
    misfit: str | None,
    roots: Roots,
    source: Source | None = None,
) -> Trajectory:
    """Return the trajectory that `located` has found, from its bytes, with what only the index knows of it.

    Without a `source` it is read by the one that the index names, with the tokenizer as far as that can be used.
    """
    trajectory = source.load(root, locators) if source else _read(row, root, locators, roots)
    if misfit and trajectory.messages:
        _remark(trajectory, misfit)
    # Step and split may come from the file's place, which the record does not know.
    for name in ("step", "split", "env", "agent", "effective", "policy_version", "episode_id", "group_id"):
        if trajectory.metadata.get(name) is None:
            trajectory.metadata[name] = row[name]
    trajectory.metadata["id"] = row["id"]
    trajectory.metadata["success"] = None if row["success"] is None else bool(row["success"])
    return trajectory


def _read(row: Mapping[str, Any], root: Root, locators: Sequence[Locator], roots: Roots) -> Trajectory:
    """Return a trajectory as its run's source reads it, with its text as far as the run's tokenizer can be used."""
    plain = source_named(row["source"], None, row["mapping"])
    tokenizer, problem = allowed_tokenizer(row["tokenizer"], roots)
    try:
        trajectory = source_named(row["source"], tokenizer, row["mapping"]).load(root, locators)
    except LocatorError:
        raise
    except SourceError as error:  # a tokenizer that is none
        trajectory, problem = plain.load(root, locators), str(error)
    if problem:
        _remark(trajectory, problem)
    if trajectory.read_tokens is list:  # nothing is recorded of its tokens, which a page may want to know
        return trajectory
    return replace(trajectory, read_tokens=partial(_read_tokens, trajectory, plain, root, locators))


def _read_tokens(trajectory: Trajectory, plain: Source, root: Root, locators: Sequence[Locator]) -> list[Tokens | None]:
    try:
        return trajectory.read_tokens()
    except LocatorError:
        raise
    except SourceError as error:  # the tokenizer is opened only now
        _remark(trajectory, str(error))
        return plain.load(root, locators).branch_tokens


def _remark(trajectory: Trajectory, sentence: str) -> None:
    trajectory.metadata.setdefault("remarks", []).append(sentence)
