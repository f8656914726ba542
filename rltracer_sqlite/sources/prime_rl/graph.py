"""The message graph of a Trace: root-to-leaf paths, in the order of their leaves."""

from __future__ import annotations

from typing import Any

from ..base import LocatorError

MAX_PATHS = 4_000_000  # messages on all paths together; a comb of 100,000 nodes would have 2,500,000,000


def branch_paths(nodes: list[Any]) -> list[list[int]]:
    """Return each root-to-leaf path as node numbers, root first.

    A parent that does not come before its node is treated as missing, so that the node begins a path of its own.
    Raises LocatorError where the paths have more messages together than can be held.
    """
    parents = [valid_parent(node, number) for number, node in enumerate(nodes)]
    inner = set(parents)
    leaves = [number for number in range(len(nodes)) if number not in inner]
    total = _path_lengths(leaves, parents)
    if total > MAX_PATHS:
        raise LocatorError(f"The record has {len(leaves):,} branches of together {total:,} messages: too many to show.")
    return [_path_to(leaf, parents) for leaf in leaves]


def _path_lengths(leaves: list[int], parents: list[int | None]) -> int:
    lengths: list[int] = []
    for parent in parents:
        lengths.append(1 if parent is None else lengths[parent] + 1)
    return sum(lengths[leaf] for leaf in leaves)


def valid_parent(node: Any, number: int) -> int | None:
    """Return the parent's number, or None for a root and for a parent that does not come before its node."""
    parent = node.get("parent") if isinstance(node, dict) else None
    if not isinstance(parent, int) or isinstance(parent, bool):
        return None
    return parent if 0 <= parent < number else None


def _path_to(leaf: int, parents: list[int | None]) -> list[int]:
    path, current = [], leaf
    while True:
        path.append(current)
        parent = parents[current]
        if parent is None:
            return path[::-1]
        current = parent
