"""The message graph of a Trace: root-to-leaf paths, in the order of their leaves."""

from __future__ import annotations

from typing import Any


def branch_paths(nodes: list[Any]) -> list[list[int]]:
    """Return each root-to-leaf path as node numbers, root first.

    A parent that does not come before its node is treated as missing, so that the node begins a path of its own.
    """
    parents = [valid_parent(node, number) for number, node in enumerate(nodes)]
    inner = set(parents)
    return [_path_to(leaf, parents) for leaf in range(len(nodes)) if leaf not in inner]


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
