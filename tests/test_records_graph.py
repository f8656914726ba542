"""The graph of a trace: which branches it has when its parents are odd, or beyond number."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite.sources.base import LocatorError
from tests.layouts import line, message, node, trace
from tests.record_scans import SAID, loaded, only_entry

# The graph


@pytest.mark.parametrize(
    ("parents", "branches", "bad"),
    [
        ([None, 0, 1], [[0, 1, 2]], 0),
        ([0, 0, 1], [[0, 1, 2]], 1),  # its own parent
        ([2, 0, 1], [[0, 1, 2]], 1),  # a circle
        ([None, 2, 1], [[0], [1, 2]], 1),
        ([None, -1, 1], [[0], [1, 2]], 1),
        ([None, 99, 0], [[1], [0, 2]], 1),
        ([None, 2**70, -(2**70)], [[0], [1], [2]], 2),
        ([None, 0, 0], [[0, 1], [0, 2]], 0),
    ],
)
def test_parents_that_cannot_be_begin_a_branch(
    tmp_path: Path, parents: list[int | None], branches: list[list[int]], bad: int
) -> None:
    data = line(trace(nodes=[node(said, parent) for said, parent in zip(SAID, parents, strict=True)]))
    entry, remarks = only_entry(tmp_path, data)
    [trajectory] = loaded(tmp_path, data)
    assert trajectory.branch_nodes == branches
    assert entry.branches == len(branches)
    assert len(remarks) == min(bad, 1)
    assert all("parent" in remark for remark in remarks)


def test_a_prompt_does_not_lead_to_what_comes_after_the_answer(tmp_path: Path) -> None:
    wrong = [node(message("user", "6 * 7?")), node(message("assistant", "42"), 2), node(message("user", "secret"), 0)]
    entry, _ = only_entry(tmp_path, line(trace(nodes=wrong)))
    assert entry.preview == "(empty prompt)"


def test_a_record_of_100_000_nodes(tmp_path: Path) -> None:
    chain = [{"message": message("user", "q")}, *({"parent": n, "message": SAID[2]} for n in range(99_999))]
    data = line(trace(nodes=chain, calls=[]))
    assert (only_entry(tmp_path, data)[0].turns, only_entry(tmp_path, data)[0].branches) == (99_999, 1)
    [trajectory] = loaded(tmp_path, data)
    assert len(trajectory.messages) == 100_000


def test_branches_beyond_any_memory_are_counted_and_not_shown(tmp_path: Path) -> None:
    comb = [{"message": SAID[1]}, *({"parent": n // 2 * 2, "message": SAID[2]} for n in range(99_999))]
    data = line(trace(nodes=comb, calls=[]))
    assert only_entry(tmp_path, data)[0].branches == 50_000
    with pytest.raises(LocatorError, match="50,000 branches"):
        loaded(tmp_path, data)
