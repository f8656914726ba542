"""The branches of a trajectory as a tree: where they part, which hold what was sampled, and which say the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import NotFound

from .addresses import integer

if TYPE_CHECKING:
    from rltracer_sqlite.trajectory import Trajectory

MOST_BRANCHES = 100


@dataclass(frozen=True)
class Branch:
    """One root-to-leaf path of a trajectory; `number` counts from 1, `nodes` tell shared messages from equal ones."""

    number: int
    messages: Sequence[Mapping[str, Any]]
    trained: bool | None
    nodes: Sequence[int] = ()


@dataclass(frozen=True)
class Stretch:
    """Messages `first` to `last` (from 0) that several branches share, or at whose end one `branch` ends.

    `same` are further branches with the same messages, which have no stretch of their own.
    """

    first: int
    last: int
    branch: Branch | None = None
    same: list[Branch] = field(default_factory=list)
    below: list[Stretch] = field(default_factory=list)


def branches_of(trajectory: Trajectory) -> list[Branch]:
    """Return the branches of a trajectory, at least one; a source need not know which of them hold what was sampled."""
    branches = trajectory.branches or [trajectory.messages]
    trained = [*trajectory.trained, *[None] * len(branches)]
    nodes = [*trajectory.branch_nodes, *[()] * len(branches)]
    return [
        Branch(number, messages, trained[number - 1], nodes[number - 1])
        for number, messages in enumerate(branches, start=1)
    ]


def asked_branch(trajectory: Trajectory | None, asked: str | None) -> int:
    """Return the number of the branch that an address asks for; the last one where it asks for none.

    Raises NotFound where there is no such branch, BadRequest for what is no number.
    """
    count = len(branches_of(trajectory)) if trajectory is not None else 1
    if asked is None or trajectory is None:
        return count
    number = integer(asked)
    if not 1 <= number <= count:
        raise NotFound(f"There is no branch {number}: this trajectory has {count}, counted from 1.")
    return number


def around(branches: list[Branch], current: int) -> list[Branch]:
    """Return the branches that are listed: those around the current one, where there are many."""
    first = max(0, min(current - MOST_BRANCHES // 2, len(branches) - MOST_BRANCHES))
    return branches[first : first + MOST_BRANCHES]


def branch_tree(branches: Sequence[Branch], current: int) -> list[Stretch]:
    """Return the tree of some branches: a stretch for what they share, and below it where they part.

    Branches with the same messages stand together; among them the current one, else the first, has the stretch.
    """
    alike: dict[tuple[int, ...], list[Branch]] = {}
    known: dict[int, int] = {}
    for branch in branches:
        alike.setdefault(tuple(_identity(message, known) for message in branch.messages), []).append(branch)
    paths = []
    for identity, same in alike.items():
        shown = next((branch for branch in same if branch.number == current), same[0])
        others = [branch for branch in same if branch is not shown]
        nodes = shown.nodes if len(shown.nodes) == len(shown.messages) else identity
        paths.append((tuple(nodes), shown, others))
    return _stretches(paths, 0)


def _identity(message: Mapping[str, Any], known: dict[int, int]) -> int:
    """Return a number that equal messages share; branches share message objects, so each is looked at once."""
    if id(message) not in known:
        known[id(message)] = hash(json.dumps(message, sort_keys=True, default=repr))
    return known[id(message)]


Path = tuple[tuple[int, ...], Branch, list[Branch]]


def _stretches(paths: Sequence[Path], first: int) -> list[Stretch]:
    starts: dict[int | None, list[Path]] = {}
    for path in paths:
        starts.setdefault(path[0][first] if first < len(path[0]) else None, []).append(path)
    return [_stretch(together, first) for together in starts.values()]


def _stretch(paths: Sequence[Path], first: int) -> Stretch:
    nodes, branch, same = paths[0]
    if len(paths) == 1:
        return Stretch(first, len(nodes) - 1, branch, same)
    shortest = min(len(path[0]) for path in paths)
    end = first + 1
    while end < shortest and all(path[0][end] == nodes[end] for path in paths):
        end += 1
    if end >= shortest:
        # Two paths of the same nodes would never part; each is then a stretch of its own.
        return Stretch(first, end - 1, None, [], [Stretch(end, len(path[0]) - 1, path[1], path[2]) for path in paths])
    return replace(Stretch(first, end - 1), below=_stretches(paths, end))
