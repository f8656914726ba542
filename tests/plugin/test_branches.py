"""The tree of a trajectory's branches: where they part, which are trained on, which say the same."""

from __future__ import annotations

import pytest

from datasette_rltracer.branches import MOST_BRANCHES, Branch, around, branch_tree


def branches(*paths, trained=()):
    """Return branches of these nodes; nodes of the same text are the same letter."""
    said = {node: {"role": "user", "content": node.rstrip("0123456789")} for path in paths for node in path}
    numbers = {node: number for number, node in enumerate(said)}
    return [
        Branch(number, [said[node] for node in path], number in trained, [numbers[node] for node in path])
        for number, path in enumerate(paths, start=1)
    ]


def outline(stretches):
    """Return a tree as nested lists of (first, last, branch, further branches, what is below)."""
    return [
        (
            one.first,
            one.last,
            one.branch.number if one.branch else None,
            [branch.number for branch in one.same],
            outline(one.below),
        )
        for one in stretches
    ]


@pytest.mark.parametrize(
    ("paths", "tree"),
    [
        ([["a", "b"]], [(0, 1, 1, [], [])]),
        ([["a", "b"], ["a", "c"]], [(0, 0, None, [], [(1, 1, 1, [], []), (1, 1, 2, [], [])])]),
        (
            [["a", "b", "c"], ["a", "b", "d", "e"], ["a", "f"]],
            [(0, 0, None, [], [(1, 1, None, [], [(2, 2, 1, [], []), (2, 3, 2, [], [])]), (1, 1, 3, [], [])])],
        ),
        ([["a"], ["b"]], [(0, 0, 1, [], []), (0, 0, 2, [], [])]),
        ([["a", "b1"], ["a", "b2"]], [(0, 1, 1, [2], [])]),
        ([["a", "b1"], ["a", "c"], ["a", "b2"]], [(0, 0, None, [], [(1, 1, 1, [3], []), (1, 1, 2, [], [])])]),
        ([["a", "b"], ["a", "b"]], [(0, 1, 1, [2], [])]),
    ],
)
def test_branches_share_what_they_share(paths, tree):
    assert outline(branch_tree(branches(*paths), 1)) == tree


def test_the_current_one_stands_for_its_equals():
    found = branch_tree(branches(["a", "b1"], ["a", "b2"], ["a", "b3"]), 2)
    assert outline(found) == [(0, 1, 2, [1, 3], [])]


def test_equal_messages_of_different_nodes_are_not_merged():
    """Two messages can say the same and still be two: what follows them stays on its own branch."""
    assert outline(branch_tree(branches(["a1", "b"], ["a2", "c"]), 1)) == [(0, 1, 1, [], []), (0, 1, 2, [], [])]


def test_a_source_without_a_graph_has_branches_by_their_messages():
    plain = [Branch(one.number, one.messages, None) for one in branches(["a", "b"], ["a", "c"])]
    assert outline(branch_tree(plain, 1)) == [(0, 0, None, [], [(1, 1, 1, [], []), (1, 1, 2, [], [])])]


@pytest.mark.parametrize(("current", "first"), [(1, 1), (60, 11), (300, 201)])
def test_of_many_branches_those_around_the_current_one_are_listed(current, first):
    listed = around([Branch(number, [], None) for number in range(1, 301)], current)
    assert len(listed) == MOST_BRANCHES
    assert listed[0].number == first
